"""The URIs under which clients find the resources of all kernels.

Runs on the bridge's event loop; pure. The rules, in analogy to those for names (`catalog`):

1. A resource whose URI only one kernel offers is served under its own URI.
2. If several kernels offer the same URI, each is served under its long URI, which has its
   notebook's name in front: ``frame://orders`` becomes ``frame://sales/orders``, and
   ``skill://weekly/SKILL.md`` becomes ``skill://sales/weekly/SKILL.md``. To read the bare URI is an
   error that names them all.
3. Templates that differ only in the names of their variables are the same URI.
4. The long URI can always be read, even while the resource is served under its own.

A URI that fits a fixed resource is never taken for one of a template.
"""

import re
from collections import Counter
from collections.abc import Sequence

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?")
_VARIABLE = re.compile(r"\{([^A-Za-z0-9_]?)[^}]*\}")


def serve_uris(offers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the URIs that resources are served under.

    Args:
        offers: The notebook's part of full names and the own URI of each resource.
    """
    numbers = Counter(_find_pattern(uri) for _, uri in offers)
    return [
        make_long_uri(notebook, uri) if numbers[_find_pattern(uri)] > 1 else uri
        for notebook, uri in offers
    ]


def make_long_uri(notebook: str, uri: str) -> str:
    """Return a resource's URI with its notebook's name in front."""
    scheme = _SCHEME.match(uri)
    end = 0 if scheme is None else scheme.end()
    return f"{uri[:end]}{notebook}/{uri[end:]}"


def is_template(uri: str) -> bool:
    """Return whether a URI has variables."""
    return "{" in uri


def _find_pattern(uri: str) -> str:
    """Return a URI without the names of its variables."""
    return _VARIABLE.sub(r"{\1}", uri)
