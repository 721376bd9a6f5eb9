"""Says what a run was: when, on what machine, of which commit and versions."""

import datetime as dt
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from comparison.environments import REQUIREMENTS, versions_of

OURS = ("uvicorn", "httptools", "ipykernel")


def describe_run(servers: set[str]) -> dict[str, Any]:
    """Say what this run is.

    Args:
        servers: Names of those that are measured.
    """
    script = Path(sys.argv[0])
    commit = subprocess.run(
        ["git", "-C", str(script.parent), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "command": " ".join(["python", f"tests/benchmarks/{script.name}", *sys.argv[1:]]),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {
            "mcp-notebook": {name: version(name) for name in OURS},
            **{name: versions_of(name) for name in sorted(servers & REQUIREMENTS.keys())},
        },
    }
