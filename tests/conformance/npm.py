"""The npm packages that the conformance tests run, brought in once for each lock file."""

import fcntl
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DESCRIPTION = ("package.json", "package-lock.json")
LIMIT = 600
"""Seconds for some 300 MB to come in."""


@dataclass(frozen=True)
class Programs:
    """Commands, to be followed by arguments."""

    conformance: list[str]
    inspector: list[str]


def programs() -> Programs:
    """Return the programs, from the packages of the lock file."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in DESCRIPTION))
    folder = Path(tempfile.gettempdir()) / f"mcp-notebook-tests-npm-{digest.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # for what another process of the tests brings in
        if not (folder / "complete").exists():
            _install(folder)
    modules = folder / "node_modules"
    node = str(_node(modules))
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    launcher = modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher"
    return Programs(
        conformance=[node, str(suite)],
        inspector=[node, str(launcher / "build" / "index.js"), "--cli"],
    )


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail(
            "The conformance tests need npm, which is not here: install Node.js 20 or newer "
            "(https://nodejs.org), which brings it.",
            pytrace=False,
        )
    for name in DESCRIPTION:
        shutil.copy(HERE / name, folder)
    ended = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    if ended.returncode != 0:
        pytest.fail(
            f"npm could not bring in what {HERE / DESCRIPTION[0]} names: {ended.stderr}",
            pytrace=False,
        )
    (folder / "complete").touch()


def _node(modules: Path) -> Path:
    """Return the one Node among the packages that is for this machine."""
    found = [*modules.glob("node-*/bin/node")]
    if len(found) != 1:
        pytest.fail(
            f"{HERE / DESCRIPTION[0]} names no Node for {sys.platform} on {platform.machine()}: "
            "add its package (`npm view node-PLATFORM-ARCH`) and make the lock file anew.",
            pytrace=False,
        )
    return found[0]
