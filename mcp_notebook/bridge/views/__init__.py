"""The pages of live views: what a client shows beside a result (MCP Apps).

Face: `pages`, the pages by the kind of view and by their URIs.

Threads: any; the pages are files of this package and never change.

Left to other rooms: which tools have a view (the kernel), who gets it (`server`), and the answers
to the queries of a page (the kernel's `results/views`).
"""
