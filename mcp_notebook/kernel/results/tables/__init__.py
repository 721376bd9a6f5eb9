"""Tables of any library as short text, with links to files of the whole table.

`render` decides what a table looks like in a result: `frame` reads the table by row and column,
`cell_text` writes its cells, `layouts` puts these into lines of Markdown or CSV. The modules named
``..._frame`` implement `Frame` for one kind of table each. `exports` writes the files.

Face, used by `results` only:

- `render.is_table`: whether a value is a table of a known library.
- `render.render_table`, `render_array`, `render_index`, `render_dicts`: the content blocks of one.

Threads: everything runs on the thread of the call, except `exports` and the frames that it reads,
which run on a thread of the resource store when a client reads the file.

Left to other rooms: which values are data rather than tables (`results.values`), the character
limit of a whole result (`results.blocks.truncation`), and the storage of originals (`link`). No
table library is imported here but narwhals; the others are looked up in `sys.modules`.
"""
