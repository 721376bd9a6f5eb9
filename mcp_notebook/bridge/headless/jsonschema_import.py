"""Imports jsonschema without its checks of IRIs and others, which take seconds of CPU to load.

nbformat imports jsonschema, and that imports what checks the formats of texts where something has
brought it: rfc3987_syntax makes a parser from a grammar at import, isoduration brings arrow. No
notebook has a text to check. Imported before nbformat, in the process of a bridge or a command;
never in a kernel, whose user may want the checks.
"""

from mcp_notebook.lean_imports import leave_out

with leave_out("fqdn", "idna", "isoduration", "rfc3987_syntax", "uri_template", "webcolors"):
    import jsonschema  # noqa: F401
