"""Tables of any library as short text, with links to files of the whole table.

`table_text` decides what a table looks like in a result, as CSV: `frame` reads the table by row and
column, and `cell_text` writes its cells. `summary` has a line for each column of a
longer table, from the facts that `column_facts` finds. The modules named ``..._frame`` implement
`Frame` for one kind of table each. `exports` writes the files.

Face, used by `results` only:

- `table_text.is_table`: whether a value is a table of a known library.
- `table_text.render_table`, `render_array`, `render_dicts`: the content blocks of one.
- `frame.CELLS`: how much of data is shown.
- `table_text.find_frame`, `describe_table`, `frame` and `narwhals_frame`: what `views` reads.
- `row_frame.wrap_dicts`: a list of dicts as a table.
- `summary.round_mean`, `spread`: the figures of a column.
- `outline.render_json`: data whose long lists and dicts are shortened.
- `summary.summarize_array`, `exports.describe_array`: of an array of another library's class.
- `exports.write_csv` and `write_parquet`: what a resource that is a table contains.

Threads: everything runs on the thread of the call, except `exports` and the frames that it reads,
which run on a thread of the resource store when a client reads the file.

Left to other rooms: which values are data rather than tables (`results.values`), the character
limit of a whole result (`results.blocks.truncation`), and the storage of originals (`link`). Only
narwhals is imported here; table libraries are looked up in `sys.modules`.
"""
