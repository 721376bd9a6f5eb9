"""Live views of results: what a page in the chat asks of the notebook's tables.

A view is a small page that a client shows beside a result (MCP Apps,
https://modelcontextprotocol.io/extensions/apps). It asks for rows as its person sorts, filters and
turns pages, and the answers are made here, from the table that the result was made of.

Face:

- `kept_views.KeptViews`: keeps what a result's view shows, and tells the view where to read it.
- `table_view.TableView`: answers the queries of one table's view.
- `plot_libraries.read_library`: the scripts that draw plots.

Threads: those of the resource store, several at a time; a view takes one query after another.

Left to other rooms: reading tables (`tables`), keeping them (`link`), the page itself (the bridge).
"""
