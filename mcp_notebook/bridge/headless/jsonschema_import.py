"""Imports jsonschema without its check of IRIs, which takes two seconds of CPU to load.

nbformat imports jsonschema, and that imports rfc3987_syntax where Jupyter Server has brought it: at
import it makes a parser from a grammar. No notebook has an IRI to check. Imported before nbformat,
in the process of a bridge or a command; never in a kernel, whose user may want the check.
"""

import sys

if "rfc3987_syntax" not in sys.modules:
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        import jsonschema  # noqa: F401
    finally:
        del sys.modules["rfc3987_syntax"]
