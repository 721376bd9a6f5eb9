"""The URIs of kernels' resources: ``notebook://KERNEL/...``.

Runs on both sides, pure. Only the kernel interprets what follows its id.
"""

from collections.abc import Sequence
from urllib.parse import unquote

from mcp_notebook.content import ResourceLink
from mcp_notebook.text.missing_tools import READ_RESOURCE

SCHEME = "notebook"
"""The scheme of all URIs of kernels' resources."""
LIBRARIES = "library"
"""The first part of the URIs of scripts, behind the kernel's id."""
PAGES = "page"
"""The first part of the URIs of tools' own pages, behind the kernel's id."""
VIEW = "view"
"""The last part of the URI that a live view reads, before its query."""


def make_prefix(kernel_id: str) -> str:
    """Return the prefix of the URIs of a kernel's resources."""
    return f"{SCHEME}://{kernel_id}/"


def make_view_uri(uri: str) -> str:
    """Return the URI that the live view of an original reads, given one of its files' URIs."""
    return f"{uri.rpartition('/')[0]}/{VIEW}"


def make_library_uri(uri: str, name: str) -> str:
    """Return the URI of the script that draws a kernel's plots, given that of one of its files."""
    return f"{make_prefix(find_kernel_id(uri) or '')}{LIBRARIES}/{name}.js"


def make_page_uri(kernel_id: str, tool: str) -> str:
    """Return the URI of a tool's own page, as the kernel makes it for the bridge."""
    return f"{make_prefix(kernel_id)}{PAGES}/{tool}"


def find_part(uri: str, folder: str) -> str | None:
    """Return what follows ``notebook://KERNEL/FOLDER/`` in a URI, or None for any other URI."""
    prefix = f"{make_prefix(find_kernel_id(uri) or '')}{folder}/"
    return uri.removeprefix(prefix) if uri.startswith(prefix) else None


def is_view_uri(uri: str) -> bool:
    """Return whether a live view reads this URI, with or without a query."""
    return bool(find_kernel_id(uri)) and split_query(uri)[0].endswith(f"/{VIEW}")


def split_query(uri: str) -> tuple[str, str]:
    """Return a URI without the query of a view, and that query: empty if it has none."""
    address, _, query = uri.partition("?")
    return address, unquote(query)


def find_kernel_id(uri: str) -> str | None:
    """Return the id of the kernel whose resource a URI names, or None for any other URI."""
    scheme, _, rest = uri.partition("://")
    kernel_id, slash, _ = rest.partition("/")
    return kernel_id if scheme == SCHEME and kernel_id and slash else None


def describe_links(links: Sequence[ResourceLink]) -> str:
    """Describe links to a model in a text: the target, and the call that reads it.

    Args:
        links: One, or all forms of one original.
    """
    first, *others = links
    about = f": {first.description}" if first.description else ""
    if find_kernel_id(first.uri) is None:
        return f"[{first.about}{about}. Its address: {first.uri}]"
    forms = f", also as {' and '.join(link.name for link in others)} there" if others else ""
    return f'[{first.about}{about}. Read it by {READ_RESOURCE}(uri="{first.uri}"){forms}]'
