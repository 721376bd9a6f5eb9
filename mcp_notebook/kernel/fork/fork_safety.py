"""Knows which libraries do not survive a fork.

Runs in the user's kernel, on the thread of a call before it forks, and in the copy. Nothing is
imported here: only libraries that the notebook has loaded can break.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp_notebook.kernel.fork.raw_fork import has_raw_fork


def _has_cuda(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized())


def _may_stop_kernel(numpy: Any) -> bool:
    """Return whether a fork beside a thread that multiplies matrices may stop the kernel."""
    return not has_raw_fork() and "openblas" in repr(numpy.__config__.CONFIG["Build Dependencies"])


def _is_loaded(_module: Any) -> bool:
    return True


_UNSAFE: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "torch": (_has_cuda, "torch uses the GPU, which a copy of a process cannot"),
    "numpy": (
        _may_stop_kernel,
        (
            "numpy uses OpenBLAS, and with glibc before 2.34 and on macOS, a fork beside its "
            "threads could hang the kernel"
        ),
    ),
    "cupy": (_is_loaded, "cupy uses the GPU, which a copy of a process cannot"),
    "jax": (_is_loaded, "jax waits for its threads, which a copy of a process does not have"),
    "polars": (_is_loaded, "polars waits for its threads, which a copy of a process does not have"),
    "tensorflow": (
        _is_loaded,
        "tensorflow waits for its threads, which a copy of a process does not have",
    ),
}
"""Modules that can make a copy hang or crash: a check, and the reason."""


_OPEN_FILES = Path("/proc/self/fd")
_GPU = "/dev/nvidia-uvm"
"""The device that CUDA opens when any library initialises it."""


def find_fork_danger(modules: Mapping[str, Any] | None = None) -> str | None:
    """Return why a copy of this process would not work; None if no reason is known.

    Args:
        modules: The loaded modules by name; None: ``sys.modules``.
    """
    modules = sys.modules if modules is None else modules
    for name, (is_unsafe, reason) in _UNSAFE.items():
        module = modules.get(name)
        try:
            if module is not None and is_unsafe(module):
                return reason
        except Exception:  # noqa: BLE001, S112 - another module by this name
            continue
    return None


def find_danger_in_copy(open_files: Path = _OPEN_FILES) -> str | None:
    """Return why this copy of a process would not work; None if no reason is known.

    Checked in the copy, where no other thread holds the GIL.

    Args:
        open_files: The folder of links to the files that the process has open.
    """
    with suppress(OSError):  # not on macOS, which has no CUDA
        for file in open_files.iterdir():
            with suppress(OSError):  # the one of the folder
                if os.readlink(file).startswith(_GPU):  # noqa: PTH115 - a Path for each is slow
                    return "the notebook uses the GPU (CUDA), which a copy of a process cannot"
    return None
