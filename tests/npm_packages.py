"""Programs from npm that tests run, brought in once for each lock file.

``python tests/npm_packages.py tests/assistants`` does so ahead of the tests.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DESCRIPTION = ("package.json", "package-lock.json")
EDITOR = Path("node_modules", "code-server", "lib", "vscode")
"""A folder with packages of its own, which its package would bring in by a script."""
LIMIT = 600
"""Seconds for some hundred megabytes to come in."""


class CannotInstall(Exception):
    """The packages cannot be brought in."""


def bring_in(description: Path) -> Path:
    """Return the ``node_modules`` with what the lock file in a folder names.

    Args:
        description: The folder with the files of `DESCRIPTION`.

    Raises:
        CannotInstall: There is no npm, or it failed.
    """
    digest = hashlib.sha256(b"".join((description / name).read_bytes() for name in DESCRIPTION))
    downloads = Path(os.environ.get("TESTS_DOWNLOADS", tempfile.gettempdir()))
    folder = downloads / f"mcp-notebook-tests-npm-{digest.hexdigest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # for what another process of the tests brings in
        if not (folder / "complete").exists():
            _install(description, folder)
    return folder / "node_modules"


def _install(description: Path, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstall(
            "These tests need npm, which is not here: install Node.js 20 or newer "
            "(https://nodejs.org), which brings it."
        )
    for name in DESCRIPTION:
        shutil.copy(description / name, folder)
    # Not ``ci``, which refuses a lock file without the packages of other platforms.
    words = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    for place, option in ((folder, "--no-save"), (folder / EDITOR, "--omit=dev")):
        if not place.exists():
            continue
        ended = subprocess.run(
            [*words, option], cwd=place, check=False, capture_output=True, text=True, timeout=LIMIT
        )
        if ended.returncode != 0:
            raise CannotInstall(
                f"npm could not bring in what {description / DESCRIPTION[0]} names: {ended.stderr}"
            )
    (folder / "complete").touch()


def find_node(modules: Path) -> Path:
    """Return the one Node among the packages that is for this machine.

    Raises:
        CannotInstall: There is none.
    """
    found = [*modules.glob("node-*/bin/node")]
    if len(found) != 1:
        raise CannotInstall(
            f"package.json names no Node for {sys.platform} on {platform.machine()}: add its "
            "package (`npm view node-PLATFORM-ARCH`) and make the lock file anew."
        )
    return found[0]


if __name__ == "__main__":
    bring_in(Path(sys.argv[1]))
