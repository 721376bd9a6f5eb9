"""The URIs of kernels' resources: ``notebook://KERNEL/...``.

Runs on both sides, pure. Only the kernel interprets what follows its id.
"""

SCHEME = "notebook"
"""The scheme of all URIs of kernels' resources."""


def make_prefix(kernel_id: str) -> str:
    """Return the prefix of the URIs of a kernel's resources."""
    return f"{SCHEME}://{kernel_id}/"


def find_kernel_id(uri: str) -> str | None:
    """Return the id of the kernel whose resource a URI names, or None for any other URI."""
    scheme, _, rest = uri.partition("://")
    kernel_id, slash, _ = rest.partition("/")
    return kernel_id if scheme == SCHEME and kernel_id and slash else None
