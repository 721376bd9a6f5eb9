"""The limits of a machine or container for kernels: memory and open files.

Runs on the bridge's event loop; reading the limits takes milliseconds.
"""

from contextlib import suppress
from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

_GROUP = Path("/sys/fs/cgroup")
"""The limits of a container (cgroup v2)."""
_FILES_EACH = 32
"""Open files and sockets of the bridge for each kernel: 24, and more while it starts."""
_FILES_BESIDE = 256
"""Open files and sockets to keep for clients."""


def measure_kernel(pid: int) -> int:
    """Return the unshared memory of a process in bytes; 0 if it has ended."""
    try:
        return int(psutil.Process(pid).memory_full_info().uss)
    except psutil.Error:
        return 0


def find_free_memory(group: Path = _GROUP) -> int:
    """Return the memory that further processes can use, in bytes.

    Args:
        group: The folder with the limits of the container.
    """
    free = int(psutil.virtual_memory().available)
    try:
        most, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (group / "memory.stat").read_text().splitlines()
        files = next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, StopIteration):  # no container, or one without a limit: "max"
        return free
    return min(free, max(most - used + files, 0))  # the page cache can be reclaimed


def allow_open_files(kernels: int) -> int:
    """Return for how many of these further kernels this process may open files.

    Raises the process's soft limit, usually 1,024, as far as necessary.
    """
    if resource is None:
        return kernels
    beside = psutil.Process().num_fds() + _FILES_BESIDE
    needed = beside + kernels * _FILES_EACH
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        with suppress(OSError, ValueError):  # macOS allows fewer than its hard limit
            most = needed if hard == resource.RLIM_INFINITY else max(min(needed, hard), soft)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return kernels
    return max(0, min(kernels, (soft - beside) // _FILES_EACH))
