"""The frameworks: what each is installed from, and what was seen of it (`frameworks.toml`)."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT = 600
"""Seconds for some hundred megabytes to come in."""


class CannotInstall(Exception):
    """A framework's packages cannot be brought in."""


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A library that agents are built with, which takes its tools from MCP servers."""

    agent: str
    """The program in `agents/`: what a user of the framework would write."""
    packages: Sequence[str]
    """What its environment is made of: its own package first, each with its version."""
    tool: str = "{}"
    """What it calls a tool, with a ``{}``."""
    seen: Mapping[str, str]
    """By the names of the tests."""


_FILE = tomllib.loads((Path(__file__).parent / "frameworks.toml").read_text("utf-8"))
ROWS: Mapping[str, str] = _FILE["rows"]
"""What the table calls each test."""
FRAMEWORKS: Mapping[str, Framework] = {
    name: Framework(**framework) for name, framework in _FILE["frameworks"].items()
}
"""By the names that people know."""


def bring_in(packages: Sequence[str]) -> Path:
    """Return the Python of an environment with packages, made once and kept for the next run.

    Raises:
        CannotInstall: The packages cannot be brought in.
    """
    digest = hashlib.sha256("\n".join([sys.version, *packages]).encode())
    downloads = Path(os.environ.get("TESTS_DOWNLOADS", tempfile.gettempdir()))
    folder = downloads / f"mcp-notebook-tests-pip-{digest.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    python = folder / "bin" / "python"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # for what another process of the tests brings in
        if not (folder / "complete").exists():
            _run(folder, sys.executable, "-m", "venv", str(folder))
            _install(folder, python, packages)
            (folder / "complete").touch()
    return python


def _install(folder: Path, python: Path, packages: Sequence[str]) -> None:
    uv = shutil.which("uv")
    if uv:
        try:
            return _run(folder, uv, "pip", "install", "--quiet", "--python", str(python), *packages)
        except CannotInstall:
            pass  # uv reads none of pip's configuration, which may know the only way to packages
    return _run(folder, str(python), "-m", "pip", "install", "--quiet", *packages)


def _run(folder: Path, *command: str) -> None:
    ended = subprocess.run(
        command,
        # What builds a package leaves things in the home folder, as rustup does, and uv its locks.
        env=os.environ | {"HOME": str(folder), "TMPDIR": str(folder)},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
    )
    if ended.returncode != 0:
        raise CannotInstall(f"{' '.join(command)} failed:\n{ended.stdout[-2000:]}")
