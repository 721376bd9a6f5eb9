"""Reads the code of a notebook's file without nbformat: in a millisecond, and without its outputs.

Runs in any thread of the bridge or the command. A bridge that lists a folder of notebooks needs
nothing else, and nbformat with what it imports takes a quarter of a second. Only format 4 is read,
which Jupyter has written since 2015; `notebook_reader` reads all others, when a notebook is run.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field
from pydantic_core import to_json

from mcp_notebook.bridge.headless.source_tools import list_source_tools
from mcp_notebook.errors import NotebookError
from mcp_notebook.text.wording import count
from mcp_notebook.wire import messages
from mcp_notebook.wire.frames import replace_surrogates

Look: TypeAlias = tuple[int, int, int]
"""Inode, time of modification and size of a file: differs after each save."""
DEFAULT_KERNEL = "python3"
"""The kernelspec of a notebook that does not name one."""
MAX_BYTES = 2**28
"""Larger files are not read."""
_FORMAT = 4
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_CONFLICT = re.compile(rb"^<{7} .*\r?\n(?:.*\n)*?={7}\r?\n", re.MULTILINE)
_MENTIONS = ("mcp_notebook", "mcp_tool", "mcp_prompt", "mcp_resource", "mcp_skill")
"""A notebook whose code contains none of these declares nothing."""
_SECTION = re.compile(
    r"[\d.\s]*(set-?\s?up|imports?|install(ation)?|(table of )?contents?|overview|introduction"
    r"|requirements|prerequisites|configuration|getting started)\W*",
    re.IGNORECASE,
)
"""A heading that tells nothing of its notebook."""
_MAX_TITLE = 80
_MAX_DECLARED = 20
_MAX_LINE = 100


class _Metadata(Struct):
    kernelspec: dict[str, Any] = field(default_factory=dict)


class _CellMetadata(Struct):
    tags: Any = field(default_factory=list)


class _Cell(Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    metadata: _CellMetadata = field(default_factory=_CellMetadata)

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else "".join(self.source)


class _Document(Struct):
    """The part of a file that is read; the rest is skipped, not parsed."""

    nbformat: int
    cells: list[_Cell] = field(default_factory=list)
    metadata: _Metadata = field(default_factory=_Metadata)


class NotebookCode(Struct, frozen=True):
    """What a notebook's kernel would run."""

    kernel_name: str
    cells: list[tuple[str, Any]]
    """The source of each code cell, and its tags."""
    title: str
    """The first heading; empty without one, or if it is only that of a section."""
    digest: str
    """A hash of all that a kernel runs, which is that of an `Offer`."""
    tools: list[messages.ToolInfo]
    """What its source declares."""

    @property
    def mentions_us(self) -> bool:
        """Whether any cell can declare something."""
        return any(mention in source for source, _ in self.cells for mention in _MENTIONS)

    def summarize(self) -> str:
        """Return which tools and prompts its source declares, as a sentence; empty if none."""
        functions = [_describe(tool) for tool in self.tools]
        shown = functions[:_MAX_DECLARED]
        more = len(functions) - len(shown)
        names = ", ".join(shown) + (f" and {count(more, 'more', 'more')}" if more else "")
        return f"Its code declares {names}." if names else ""


def read_code(path: Path) -> NotebookCode:
    """Return the code of a notebook's file.

    Raises:
        NotebookError: It is not a notebook of format 4; the message is the end of a sentence.
        OSError: The file cannot be read.
    """
    if path.stat().st_size > MAX_BYTES:
        raise NotebookError(f"it is larger than {MAX_BYTES // 2**20} MB")
    document = _parse(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    if document.nbformat != _FORMAT:
        raise NotebookError(
            f"it has the old format {document.nbformat}: open it in Jupyter and save it"
        )
    code = [(cell.text, cell.metadata.tags) for cell in document.cells if cell.cell_type == "code"]
    kernel_name = find_kernel_name(document.metadata.kernelspec)
    try:
        digest = hash_code((kernel_name, code))
    except ValueError:  # a lone surrogate
        raise NotebookError("its code has characters that are not Unicode") from None
    return NotebookCode(kernel_name, code, _find_title(document), digest, list_source_tools(code))


def look_at(path: Path) -> Look | None:
    """Return a value that changes when a file is saved; None without a file."""
    try:
        return describe_look(path.stat())
    except OSError:
        return None


def describe_look(status: os.stat_result) -> Look:
    """Return what `look_at` does, for a file whose status is known."""
    return status.st_ino, status.st_mtime_ns, status.st_size


def find_kernel_name(kernelspec: Any) -> str:
    """Return the name of the kernelspec that a notebook's metadata names, if it does."""
    return str(kernelspec.get("name") or DEFAULT_KERNEL)


def hash_code(code: tuple[object, ...]) -> str:
    """Return a hash of what a kernel runs: the kernelspec's name, and the cells with their tags."""
    return hashlib.sha256(to_json(code)).hexdigest()


def parse_without_outputs(text: str | bytes) -> Any:
    """Parse a notebook's JSON; its outputs, which may be millions, are dropped on the way.

    Raises:
        ValueError: It is not JSON.
    """
    return json.loads(text, object_hook=_drop_outputs)


def _drop_outputs(part: dict[str, Any]) -> dict[str, Any] | None:
    if "output_type" in part:
        return None
    if "outputs" in part:
        part["outputs"] = []
    return part


def explain_git(content: bytes) -> str:
    """Return what Git has made of a file that is not JSON, and the next step; empty if nothing."""
    if content.startswith(_LFS_POINTER):
        return "it is a pointer of Git LFS, not the notebook itself: run `git lfs pull`"
    if (conflict := _CONFLICT.search(content)) is not None:
        line = content.count(b"\n", 0, conflict.start()) + 1
        return f"it has Git's conflict markers, the first in line {line:,}: resolve the conflict"
    return ""


def _parse(content: bytes) -> _Document:
    try:
        try:
            return msgspec.json.decode(content, type=_Document)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:  # Python also writes NaN, and reads it
            return msgspec.convert(parse_without_outputs(content), _Document)
    except msgspec.ValidationError:
        raise NotebookError("it is JSON of another kind, so it is not a notebook") from None
    except (ValueError, RecursionError):
        reason = explain_git(content) or "it is not JSON, so it is not a notebook"
        raise NotebookError(reason) from None


def _find_title(document: _Document) -> str:
    for cell in document.cells:
        for line in cell.text.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("#"):
                title = replace_surrogates(line.strip("# ")[:_MAX_TITLE]).rstrip(".")
                return "" if _SECTION.fullmatch(title) else title
    return ""


def _describe(tool: messages.ToolInfo) -> str:
    line = tool.description.strip().partition("\n")[0].rstrip(". ")[:_MAX_LINE]
    return f"{tool.name} ({line})" if line else tool.name
