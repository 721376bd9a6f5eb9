"""Packs a notebook with its packages for another machine: ``mcp-notebook bundle``.

Runs on the event loop of the command; uv and the notebook run in child processes. A bundle is a
folder with the notebook and a script that serves it, whose block lists the packages, with their
locked versions beside it. A container and Claude Desktop start that script by uv.
"""

import ast
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio

from mcp_notebook.bridge.headless.notebook_reader import list_code_cells, read_notebook
from mcp_notebook.bridge.headless.notebook_trust import check_trust
from mcp_notebook.bridge.headless.script_environment import (
    BLOCK_START,
    find_block,
    find_uv,
    lock_script,
    sync_environment,
)
from mcp_notebook.bridge.headless.source_tools import parse_cell
from mcp_notebook.discovery.own_requirement import find_own_requirement
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.settings import DEFAULT_PORT, Settings
from mcp_notebook.text.terminal import print_note

_SCRIPT = "server.py"
_RUN = ["run", "--frozen", "--script"]
_CODE = """
import os
import sys
from pathlib import Path

from mcp_notebook.__main__ import main

os.environ["MCP_NOTEBOOK_OWN_ENVIRONMENT"] = "0"  # this one is the notebook's own
sys.argv[1:] = [*(sys.argv[1:] or ["stdio"]), str(Path(__file__).with_name({name!a}))]
main()
"""
_CONTAINERFILE = """\
# podman build -t {image} . && podman run -e MCP_NOTEBOOK_TOKEN -p 127.0.0.1:{port}:{port} {image}
FROM ghcr.io/astral-sh/uv:python{python}-bookworm-slim
RUN useradd --create-home --uid 1000 user
USER 1000
WORKDIR /home/user/bundle
COPY --chown=user . .
RUN uv sync --frozen --script {script}
EXPOSE {port}
# --insecure: TLS ends in front of the container.
ENTRYPOINT ["uv", "run", "--frozen", "--script", "{script}", "serve", "--host", "0.0.0.0", \
"--port", "{port}", "--insecure"]
"""
_NOT_PASSED = ("MCP_NOTEBOOK", "JUPYTER", "IPYTHON", "PYTHON", "VIRTUAL_ENV", "CONDA")
"""Variables of the author's environment that the bundle does without."""


async def write_bundle(
    path: Path, folder: Path, include: Sequence[Path], settings: Settings
) -> None:
    """Write a bundle of a notebook that runs with its own packages.

    Args:
        path: The notebook.
        folder: The folder to write, which must not exist.
        include: Files and folders that the notebook reads, below its own folder. Hidden ones
            below a folder are left out. The notebook itself: its outputs are packed as well.
        settings: Whether an untrusted notebook may be run.

    Raises:
        NotebookError: The notebook lists no packages, a cell fails, or a file cannot be read or
            written; then there is no folder.
    """
    try:
        await _write(path, folder, include, settings)
    except OSError as error:
        raise NotebookError(f"{error.filename or folder}: {error.strerror or error}.") from error


async def _write(path: Path, folder: Path, include: Sequence[Path], settings: Settings) -> None:
    text, notebook = read_notebook(path)
    _check_absence(folder)
    sources = [cell.source for cell in list_code_cells(notebook).cells]
    block = find_block(path, sources)
    if block is None:
        raise NotebookError(
            f"{path.name} does not list its packages. Put this into its first code cell, with what "
            f"else it needs:\n\n{_propose_block(sources)}"
        )
    await check_trust(path, text, settings)
    uv = find_uv(f"A bundle of {path.name} needs uv, which locks and installs its packages.")
    with tempfile.TemporaryDirectory(prefix="mcp-notebook-bundle-") as temporary:
        draft = Path(temporary) / "bundle"
        draft.mkdir()
        _copy(path, json.loads(text), include, draft)
        own = await _pack_ourselves(uv, draft)
        script = draft / _SCRIPT
        print_note(f"{path.name}: installing its packages")
        await lock_script(uv, path, script, block, own)
        block_of_all = script.read_text(encoding="utf-8")
        script.write_text(block_of_all + _CODE.format(name=path.name), encoding="utf-8")
        python = await sync_environment(uv, path, script)
        print_note(f"{path.name}: running its cells in that environment")
        tools = await _try(python, path.name, draft, Path(temporary))
        (draft / "manifest.json").write_text(_make_manifest(path, notebook, tools))
        _zip(draft, draft / f"{path.stem}.mcpb")
        (draft / "Containerfile").write_text(await _make_containerfile(path, python))
        shutil.copytree(draft, folder)


def _check_absence(folder: Path) -> None:
    if folder.exists():
        raise NotebookError(f"{folder} exists already. Remove it, or name another folder.")


def _copy(path: Path, document: Any, include: Iterable[Path], draft: Path) -> None:
    """Copy the notebook and what it reads. Its kernelspec is one of the author's machine."""
    if isinstance(document.get("metadata"), dict):
        document["metadata"].pop("kernelspec", None)
    home = path.resolve().parent
    named = [_find_included(file, home) for file in include]
    _write_notebook(document, draft / path.name, keeps_outputs=path.resolve() in named)
    left_out: list[Path] = []
    for found in named:
        for file in _list_files(found, found, home, left_out):
            target = draft / file.relative_to(home)
            if target == draft / path.name:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix != ".ipynb" or file in named or not _copy_notebook(file, target):
                shutil.copy(file, target)
    if left_out:
        names = ", ".join(str(file.relative_to(home)) for file in left_out)
        print_note(f"Hidden files were left out: {names}. --include adds one that you name.")


def _find_included(file: Path, home: Path) -> Path:
    """Return the file or folder that the author named."""
    found = (home / file).resolve()
    if not found.is_relative_to(home) or found == home or not found.exists():
        raise NotebookError(
            f"--include {file}: there is no such file below {home}, the notebook's folder."
        )
    return found


def _list_files(path: Path, named: Path, home: Path, left_out: list[Path]) -> Iterator[Path]:
    """Return a file, or the files of a folder at any depth.

    Args:
        path: The file or folder.
        named: What the author named, which contains it.
        home: The notebook's folder.
        left_out: Gets the hidden files and folders, which only their own names include.

    Raises:
        NotebookError: A link leads to what the author did not name.
    """
    if not path.is_dir():
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.name.startswith("."):
            left_out.append(child)
            continue
        if child.is_symlink():
            _check_link(child, named, home)
        yield from _list_files(child, named, home, left_out)


def _check_link(link: Path, named: Path, home: Path) -> None:
    target = link.resolve()
    below = named if target.is_relative_to(named) else home
    if not target.exists():
        problem = "does not exist"
    elif not target.is_relative_to(home):
        problem = f"is outside {home}, the notebook's folder"
    elif any(part.startswith(".") for part in target.relative_to(below).parts):
        problem = "is hidden"
    elif link.is_relative_to(target):
        problem = "contains the link itself"
    else:
        return
    raise NotebookError(
        f"--include {named.relative_to(home)}: the link {link.relative_to(home)} leads to "
        f"{target}, which {problem}. Remove the link, or replace it by a copy of the file."
    )


def _copy_notebook(file: Path, target: Path) -> bool:
    """Copy a notebook without its outputs; return whether it is one."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        _write_notebook(document, target, keeps_outputs=False)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _write_notebook(document: Any, target: Path, *, keeps_outputs: bool) -> None:
    """Write a notebook; its outputs may show more of the author's data than its tools do."""
    if not keeps_outputs:
        document.get("metadata", {}).pop("widgets", None)
        for cell in document.get("cells", ()):
            if cell.get("cell_type") == "code":
                cell |= {"outputs": [], "execution_count": None}
    text = json.dumps(document, ensure_ascii=False, indent=1)
    target.write_text(text, encoding="utf-8")


async def _pack_ourselves(uv: str, draft: Path) -> list[str]:
    """Return the arguments of ``uv add`` for this package; a local one is put into the bundle."""
    own = find_own_requirement()
    address = urlsplit(own[-1].partition(" @ ")[2])
    if address.scheme != "file":
        return own
    source = Path(unquote(address.path))
    if source.is_dir():  # noqa: ASYNC240 - a local folder
        words = [uv, "build", "--quiet", "--wheel", "--out-dir", str(draft), str(source)]
        done = await anyio.run_process(words, check=False)
        if done.returncode:
            raise NotebookError(
                f"The wheel of mcp-notebook cannot be built from {source}:\n"
                f"{done.stderr.decode(errors='replace').strip()}"
            )
        (draft / ".gitignore").unlink(missing_ok=True)  # uv's own, which ignores everything
        (source,) = draft.glob("*.whl")  # noqa: ASYNC240 - a local folder
    else:
        shutil.copy(source, draft)
    return [f"./{source.name}"]


async def _try(python: Path, name: str, draft: Path, temporary: Path) -> list[dict[str, str]]:
    """Run the notebook where nothing else of the author's is, and return its tools.

    Raises:
        NotebookError: A cell fails, or the notebook offers no tools.
    """
    # In a copy: cells may write files.
    trial, home = temporary / "trial", temporary / "home"
    shutil.copytree(draft, trial)
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED)}
    env |= {"HOME": str(home), "USERPROFILE": str(home), "MCP_NOTEBOOK_OWN_ENVIRONMENT": "0"}
    words = [str(python), "-m", "mcp_notebook", "list", "--json", "--notebook", name]
    done = await anyio.run_process(words, cwd=trial, env=env, check=False)
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        _, start, rest = problem.partition("Code cell ")  # before it is how far the run came
        raise NotebookError(
            f"{start + rest or problem}\nNothing was written: {name} does "
            "not run with only its own packages and files. A package that is missing belongs in "
            "its script block, and a file in --include FILE."
        )
    listed = json.loads(done.stdout)
    tools = listed["tools"]
    return [
        {"name": tool["name"], "description": tool.get("description") or ""}
        for tool in tools
        if tool["kind"] == "tool"
    ]


def _make_manifest(path: Path, notebook: Any, tools: Sequence[dict[str, str]]) -> str:
    """Return the manifest of the bundle for Claude Desktop."""
    authors = notebook.metadata.get("authors") or [{}]
    names = [author.get("name") for author in authors if isinstance(author, dict)]
    manifest = {
        "manifest_version": "0.4",
        "name": _make_name(path),
        "display_name": path.stem,
        "version": "1.0.0",
        "description": f"The tools of the notebook {path.name}.",
        "author": {"name": next(filter(None, names), f"The author of {path.name}")},
        "server": {
            "type": "uv",
            "entry_point": _SCRIPT,
            "mcp_config": {"command": "uv", "args": [*_RUN, f"${{__dirname}}/{_SCRIPT}"]},
        },
        "tools": tools,
    }
    return json.dumps(manifest, indent=2) + "\n"


async def _make_containerfile(path: Path, python: Path) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = await anyio.run_process([str(python), "-c", code])
    return _CONTAINERFILE.format(
        image=_make_name(path),
        python=done.stdout.decode().strip(),
        port=DEFAULT_PORT,
        script=_SCRIPT,
    )


def _make_name(path: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "notebook"


def _zip(folder: Path, target: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))


def _propose_block(sources: Iterable[str]) -> str:
    """Return a block with the packages here from which a notebook imports."""
    providers = packages_distributions()
    modules = {module for source in sources for module in _list_imports(source)}
    names = {providers[module][0] for module in modules if module in providers}
    lines = [f'#     "{name}>={version(name)}",' for name in sorted(names - {"mcp-notebook"})]
    return "\n".join([BLOCK_START, "# dependencies = [", *lines, "# ]", "# ///"])


def _list_imports(source: str) -> Iterator[str]:
    """Yield the modules that a cell imports."""
    for node in ast.walk(parse_cell(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
