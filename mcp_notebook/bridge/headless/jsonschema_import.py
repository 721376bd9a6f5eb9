"""Imports jsonschema without its format checkers, which take seconds of CPU time to load.

nbformat imports jsonschema, and jsonschema imports every installed format checker: rfc3987_syntax
builds a parser from a grammar, isoduration imports arrow. The schema of notebooks uses no formats.
Imported before nbformat in the process of a bridge or a command, never in a kernel, whose user may
need the checkers.
"""

from mcp_notebook.lean_imports import leave_out

with leave_out("fqdn", "idna", "isoduration", "rfc3987_syntax", "uri_template", "webcolors"):
    import jsonschema  # noqa: F401
