"""How much memory a process has, and has had at most. Peaks are known on Linux only."""

import os
import sys
from pathlib import Path


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has now."""
    return _status(pid, "VmRSS")


def peak_of(pid: int) -> int:
    """Return the most bytes that a process has had since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Begin to look for a process's peak anew; a process of one's own user, on Linux."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def can_see_peaks() -> bool:
    """Tell whether this system tells peaks."""
    return sys.platform == "linux" and os.access("/proc/self/clear_refs", os.W_OK)


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in text.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
