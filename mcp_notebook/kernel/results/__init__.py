"""A Python value becomes content blocks within a budget.

`converter` makes the result of a call: what it printed and displayed, its value, and the value's
structured content (`structured`). `values.RULES` is the table of what a value becomes;
`value_renderer` applies it, and matches a value to a rule by the libraries of its classes
(`value_rules`). Lists and dicts with figures or tables in them are rendered item by item
(`rich_items`). Everything else renders one kind of value: `displays` MIME bundles, `tracebacks`
exceptions, and the rooms within this one `tables/`, `plots/`, `html/`, `files/` and content
`blocks/`. `custom_types` are the author's own converters.

Face:

- `converter.Converter`: makes the results of calls; all that `calls` needs.
- `outputs`: `Printed`, `Displayed`, the vocabulary that `calls.capture` shares with this room.
- `library_loaders`: which displays only load a plotting library, and so show nothing to a client.
- `custom_types.CustomTypes`: what `registry.convert` writes to.
- `files.shared_folders`: the files that results may show, and for the notebook those that were
  refused.
- `blocks.originals`: `Original` and `FileFormat`, which `link.resource_store` keeps and serves.
- `values.RULES`: the rows of the documentation's table of values.

Threads: a value is rendered on the thread that its call ran on; a `Converter` never changes, so all
threads share one. Originals are written on the thread of the client's read.

Within the room: `converter` > `values` > `files` > `tables` | `plots` > `html` > `blocks`.

Left to other rooms: running the call and capturing its outputs (`calls`), JSON of any value and
time limits for foreign code (`safe`), output schemas (`schemas`), keeping originals (`link`).
"""
