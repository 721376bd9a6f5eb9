"""The URIs of kernels' resources: ``notebook://KERNEL/...``.

Runs on both sides, pure. What follows the kernel's id is for the kernel to choose and to read.
"""

SCHEME = "notebook"
"""Of all URIs of kernels' resources."""


def make_prefix(kernel_id: str) -> str:
    """Return what the URIs of a kernel's resources begin with."""
    return f"{SCHEME}://{kernel_id}/"


def find_kernel_id(uri: str) -> str | None:
    """Return the id of the kernel whose resource a URI names, or None for any other URI."""
    scheme, _, rest = uri.partition("://")
    kernel_id, slash, _ = rest.partition("/")
    return kernel_id if scheme == SCHEME and kernel_id and slash else None
