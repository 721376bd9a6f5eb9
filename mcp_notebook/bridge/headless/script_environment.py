"""The environment of a notebook that lists its packages in a PEP 723 block, installed by uv.

Runs on the bridge's event loop; uv is a child process. The block is inline script metadata in one
of the notebook's code cells, as `juv` writes it. What is in it is for uv alone: it goes into a
file, never into a command. The notebook has been trusted before, because installing runs code.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio

from mcp_notebook.discovery.own_requirement import find_own_requirement
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.private_files import make_private_folder
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import count

BLOCK_START = "# /// script"
"""The first line of a block."""
_BLOCK = re.compile(r"(?m)^# /// script[ \t]*\n(?:#(?:| .*)\n)+?# ///[ \t]*$")
_INSTALL_LIMIT = 1_800.0
"""Seconds for uv to install packages, which may be gigabytes."""
_NAME = "mcp-notebook"
_SCRIPT = "notebook.py"
_MAX_PROBLEM = 2_000
"""Characters of uv's output in an error message."""


def find_block(path: Path, sources: Iterable[str]) -> str | None:
    """Return the script block of a notebook; None if it has none.

    Args:
        path: The notebook.
        sources: The sources of its code cells.

    Raises:
        NotebookError: It has several.
    """
    blocks = [block for source in sources for block in _BLOCK.findall(source)]
    if len(blocks) > 1:
        raise NotebookError(
            f"{path.name} has {count(len(blocks), 'script block', 'script blocks')} "
            f"(`{BLOCK_START}`). Merge them into one."
        )
    return blocks[0] if blocks else None


def find_uv(purpose: str) -> str:
    """Return the path of uv: the one that started this process, or one that is installed.

    Args:
        purpose: What uv is needed for, as a sentence.

    Raises:
        NotebookError: It is not installed.
    """
    # Desktop clients pass a PATH without the folder in which uv's installer puts it.
    usual = str(Path.home() / ".local" / "bin")
    uv = os.environ.get("UV") or shutil.which("uv") or shutil.which("uv", path=usual)
    if uv is None:
        raise NotebookError(
            f"{purpose} uv was not found. Install it (https://docs.astral.sh/uv, or `pip install "
            "uv`)."
        )
    return uv


async def install_environment(path: Path, block: str, settings: Settings) -> Path:
    """Install the packages of a block, and return the environment's Python.

    The first time, versions are chosen and locked in a folder of the user's; afterwards this takes
    a fraction of a second and needs no network.

    Args:
        path: The notebook.
        block: Its script block.
        settings: Where the locked versions are kept.

    Raises:
        NotebookError: uv is missing, or cannot install the packages.
    """
    try:
        uv = find_uv(f"{path.name} lists its packages in a script block, which uv installs.")
    except NotebookError as error:
        raise NotebookError(
            f"{error} Or set MCP_NOTEBOOK_OWN_ENVIRONMENT=0 to run the notebook in the environment "
            "of its kernel."
        ) from None
    own = find_own_requirement()
    digest = hashlib.sha256("\n".join([block, *own]).encode("utf-8", "surrogateescape"))
    folder = settings.environments_folder / digest.hexdigest()[:16]
    if not (folder / _SCRIPT).exists():
        print_note(f"{path.name}: installing the packages of its script block")
        await _lock(uv, path, block, own, folder)
    return await sync_environment(uv, path, folder / _SCRIPT)


async def sync_environment(uv: str, path: Path, script: Path) -> Path:
    """Install the locked packages of a script, and return the environment's Python.

    Args:
        uv: The path of uv.
        path: The notebook.
        script: The script with the block, beside the file with the locked versions.

    Raises:
        NotebookError: uv cannot install the packages.
    """
    await _run(uv, path, "sync", "--frozen", "--script", str(script))
    return Path(await _run(uv, path, "python", "find", "--script", str(script)))


async def lock_script(uv: str, path: Path, script: Path, block: str, own: Sequence[str]) -> None:
    """Write a script with a block and this package, and choose the versions of all packages.

    Args:
        uv: The path of uv.
        path: The notebook.
        script: The script; the locked versions go beside it.
        block: The block.
        own: As `find_own_requirement` returns it; unused if the block names this package.

    Raises:
        NotebookError: uv cannot find the packages.
    """
    text = f"{block}\n"
    script.write_text(text, "utf-8", "surrogateescape", "")  # noqa: ASYNC240 - a local file
    if not _names_us(block):
        await _run(uv, path, "add", "--frozen", "--script", script.name, *own, cwd=script.parent)
    await _run(uv, path, "lock", "--script", str(script))


async def _lock(uv: str, path: Path, block: str, own: Sequence[str], folder: Path) -> None:
    """Choose the versions of all packages, in a folder that appears only when it is complete."""
    make_private_folder(folder.parent)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix="."))
    try:
        await lock_script(uv, path, temporary / _SCRIPT, block, own)
        _move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.exists():  # another process was faster
            raise


def _names_us(block: str) -> bool:
    """Return whether a block lists this package itself, perhaps with extras or a version."""
    return re.search(rf"[\"']{_NAME}(?![\w.-])", block.replace("_", "-")) is not None


async def _run(uv: str, path: Path, *words: str, cwd: Path | None = None) -> str:
    """Run uv, and return what it prints.

    Raises:
        NotebookError: It fails or takes too long.
    """
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    try:
        with anyio.fail_after(_INSTALL_LIMIT):
            done = await anyio.run_process([uv, *words], env=env, cwd=cwd, check=False)
    except OSError as error:
        raise NotebookError(f"{uv} cannot be started: {error.strerror}.") from None
    except TimeoutError:
        raise NotebookError(
            f"uv did not install the packages of {path.name} within {_INSTALL_LIMIT:.0f} s."
        ) from None
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()[-_MAX_PROBLEM:]
        raise NotebookError(
            f"uv cannot install the packages that the script block of {path.name} lists:\n{problem}"
        )
    return done.stdout.decode(errors="replace").strip()
