"""Runs the demo notebooks and stores their outputs: ``python docs/run_notebooks.py [NOTEBOOK...]``.

Needs the extra ``gallery``. Run it after a change of a notebook or of what cells show. The outputs
are what GitHub and the site show, and a test compares them with those of a fresh run.

Two runs give the same outputs, because nothing of the machine is stored: each notebook runs in a
folder, with a home folder, a kernel's id and a hash seed of its own; times of execution are not
recorded; paths below both folders are written as "." and "~", addresses of objects as
``0x7f0000000000``, the times of ``%mcp status`` and ``%mcp check`` as one time each, and random
parts of links and of names of IPython's files as zeros. `differences` compares the rest: texts word
for word, pictures and sounds by their type and (about) their size, as fonts and encoders differ
from one machine to the next.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from rich.progress import Progress

FOLDER = Path(__file__).parent.parent / "notebooks"
KERNEL_ID = "0" * 32
"""The record's id, which is a part of the links to originals."""
CONNECTED = ("good_tools.ipynb", "scaling.ipynb")
"""Notebooks in which a client looks for open notebooks; kernels with `KERNEL_ID` are not found."""
PIXELS = 12
"""By which the size of a picture may differ: labels are as wide as the machine's fonts."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
_MOMENT = re.compile(r"\bas of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_KERNEL_NAME = re.compile(r"\bkernel-\d+")
"""Of a notebook whose file is unknown, with the PID."""
_SECONDS = re.compile(r"(?m)^(\w+ +[\d,]+ +\d+ +)\d+\.\d\d(?= +[\d,]+ +(?:yes|none|\?|-) )")
"""Of calls, in the table of ``%mcp check``."""
_CALL_TIME = re.compile(r"\b\d\d:\d\d:\d\d this notebook: ")
_CALL_LENGTH = re.compile(r"(?<=12:00:00)( this notebook: \w+ in )[\d.]+ m?s\b")
"""Of calls, in ``%mcp status``."""
_ANSWERS = re.compile(r"(?<=: first )'[^']+', then '[^']+'")
"""Of a tool that has another answer with each call, in the findings of ``%mcp check``."""
_IPYTHON_FILE = re.compile(r"\bipykernel_\d+")
_LINK = re.compile(rf"(notebook://{KERNEL_ID}/)[0-9a-f]+")


def notebook_paths() -> list[Path]:
    """Return the demo notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def run_notebook(path: Path, on_cell: Callable[[], object] = lambda: None) -> NotebookNode:
    """Run a notebook in an empty folder, and return it with its outputs.

    Args:
        path: The notebook, which is left as it is.
        on_cell: Called after each cell.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    with tempfile.TemporaryDirectory(prefix="mcpnb-") as home, tempfile.TemporaryDirectory() as cwd:
        env = {name: text for name, text in os.environ.items() if "MCP_NOTEBOOK" not in name} | {
            "HOME": home,
            "IPYTHONDIR": f"{home}/.ipython",
            "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", f"{home}/.matplotlib"),
            "PYTHONHASHSEED": "0",
            # Another cluster of Dask on this machine has the port of its status page.
            "PYTHONWARNINGS": "ignore:Port 8787 is already in use",
        }
        if path.name not in CONNECTED:
            env["MCP_NOTEBOOK_KERNEL_ID"] = KERNEL_ID
        client = NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            skip_cells_with_tag="",  # as in JupyterLab
            resources={"metadata": {"path": cwd}},
            on_cell_complete=lambda **_: on_cell(),
        )
        client.execute(env=env, stderr=subprocess.DEVNULL)  # the process's own, not the cells'
        folders = {os.path.realpath(cwd): ".", cwd: ".", os.path.realpath(home): "~", home: "~"}
    notebook.metadata = metadata  # without the version of this Python
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_neutral(output, folders) for output in cell.outputs]
            cell.metadata.pop("execution", None)
    return notebook


def _neutral(value: Any, folders: Mapping[str, str]) -> Any:
    """Return an output without what is the machine's or the run's own."""
    if isinstance(value, dict):
        return NotebookNode({name: _neutral(item, folders) for name, item in value.items()})
    if isinstance(value, list):
        return [_neutral(item, folders) for item in value]
    if not isinstance(value, str):
        return value
    for folder, name in folders.items():
        value = value.replace(folder, name)
    value = _MOMENT.sub("as of 2026-01-01 12:00:00", value)
    value = _KERNEL_NAME.sub("kernel-1", value)
    value = _ADDRESS.sub("0x7f0000000000", value)
    value = _LINK.sub(rf"\g<1>{'0' * 16}", value)
    value = _SECONDS.sub(r"\g<1>0.05", value)
    value = _CALL_TIME.sub("12:00:00 this notebook: ", value)
    value = _ANSWERS.sub("'Dec, 301 mm', then 'Nov, 287 mm'", value)
    value = _CALL_LENGTH.sub(r"\g<1>50 ms", value)
    return _IPYTHON_FILE.sub("ipykernel_0", value)


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook as Jupyter does."""
    nbformat.validate(notebook)
    text = json.dumps(nbformat.v4.rwbase.split_lines(notebook), indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")


# -- comparing -------------------------------------------------------------------------------------


def differences(stored: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Return where the outputs of two notebooks differ, one line for each cell that does."""
    found = []
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        if old.cell_type != "code":
            continue
        old_outputs, new_outputs = ([_summary(o) for o in cell.outputs] for cell in (old, new))
        if not _alike(old_outputs, new_outputs):
            found.append(f"{old.id}: {old_outputs} is stored, a fresh run gives {new_outputs}")
        if old.execution_count != new.execution_count:
            found.append(f"{old.id}: number {old.execution_count}, not {new.execution_count}")
    return found


class _Size(NamedTuple):
    width: int
    height: int


def _summary(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output with the sizes of pictures and sounds in place of their bytes."""
    summary = dict(output)
    if "data" in output:
        summary["data"] = {kind: _measure(kind, item) for kind, item in output["data"].items()}
    return summary


def _measure(kind: str, item: Any) -> Any:
    if kind == "image/png":
        header = b64decode(item)[:24]
        return _Size(*(int.from_bytes(header[at : at + 4], "big") for at in (16, 20)))
    if not isinstance(item, str):
        return item
    return re.sub(r"(data:[\w/+.-]+;base64,)[\w+/=\s]+", r"\1...", item)


def _alike(old: Any, new: Any) -> bool:
    if isinstance(old, _Size) and isinstance(new, _Size):
        return all(abs(a - b) <= PIXELS for a, b in zip(old, new, strict=True))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_alike(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_alike, old, new))
    return bool(old == new)


def main(words: Sequence[str] | None = None) -> None:
    """Run notebooks, with a progress bar, and store what their cells show."""
    parser = argparse.ArgumentParser(description="Run the demo notebooks and store their outputs.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them by default")
    paths = parser.parse_args(words).notebooks or notebook_paths()
    with Progress() as progress:
        for path in paths:
            cells = nbformat.read(path, as_version=4).cells
            code_cells = sum(cell.cell_type == "code" for cell in cells)
            task = progress.add_task(path.name, total=code_cells)
            notebook = run_notebook(path, lambda task=task: progress.advance(task))
            write_notebook(notebook, path)


if __name__ == "__main__":
    main()
