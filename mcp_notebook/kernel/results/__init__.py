"""A Python value becomes content blocks within a budget.

The way of a value goes in one direction:

1. `converter` makes the result of a call: what it printed and displayed (`outputs`), its value, and
   the value's structured content (`structured`).
2. `values.RULES` is the table of what a value becomes; `value_renderer` applies the first rule that
   matches, and renders the items of lists and dicts with figures or tables in them one by one.
3. A rule calls the reader of its kind: `displays` for MIME bundles, `library_values` for objects of
   libraries, and the rooms `tables/`, `plots/`, `html/` and `files/`. `tracebacks` reads
   exceptions.
4. Each reader returns pieces of content, and `blocks.fit` fits all of them to the budget.

Face:

- `converter.Converter`: makes the results of calls; all that `calls` needs.
- `views.kept_views.KeptViews`: keeps what a live view shows; `views.table_view` and
  `views.plot_libraries` answer it.
- `outputs`: `Printed` and `Displayed`, which `calls.capture` collects.
- `library_loaders`: tells which displays only load a plotting library and show nothing.
- `files.shared_folders`: the files that results may show, and for the notebook those that were
  refused.
- `tracebacks`: `ErrorStyle`, by which `calls` chooses what a client gets of an exception; an
  `ErrorText` keeps the whole of it for the author.
- `blocks.originals`: `Original` and `FileFormat`, which `link.resource_store` keeps and serves.
- `variable_summary`: what a client reads of a variable, which `notebook.inspection` offers.
- `values.RULES`: the rows of the documentation's table of values.

Threads: a value is rendered on the thread of its call. A `Converter` never changes, so all threads
share one. Originals are written on the thread of the client's read.

Within the room: `converter` > `values` | `outputs` > `files` > `tables` | `plots` > `html` >
`blocks`.

Left to other rooms: running the call and capturing its outputs (`calls`), JSON of any value and
time limits for foreign code (`safe`), output schemas (`schemas`), keeping originals (`link`).
"""
