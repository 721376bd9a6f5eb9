"""A cache of notebooks' tools, which are listed while the kernel is still starting, or asleep.

Many clients request the list of tools only once, before the first turn of their assistant, and a
kernel takes seconds to start and to run the cells. So the tools of each notebook that was run are
stored in a private folder of the user, one file for each notebook. Once the kernel has started, its
own list replaces them. An offer is current while the notebook has the same kernelspec and code.
Without one, its source tells what it declares (`source_tools`); what only running code had declared
is still listed, with a note.

Runs in any thread of the bridge, or in a command; its disk access takes milliseconds.
"""

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, json, structs

from mcp_notebook.bridge.headless.notebook_code import hash_code, read_code
from mcp_notebook.bridge.headless.source_tools import list_source_tools
from mcp_notebook.errors import NotebookError
from mcp_notebook.settings.private_files import read_private_json, write_private
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

MAX_OFFERS = 2_000
"""Size of the LRU cache: a folder may have hundreds of notebooks."""
MAX_OFFER_BYTES = 2**20
"""Larger offers are not stored: the source is then listed at the next start."""

_AS_BEFORE = "(As it was when the notebook last ran; its code has changed since.)"


class Offer(Struct, frozen=True):
    """The tools of a notebook after its cells had run."""

    code: str
    """Hash of the kernelspec and the code cells."""
    notebook: str
    """The notebook's name."""
    tools: list[messages.ToolInfo]
    in_source: list[str] = []
    """Names that its source declared."""


def keep_offer(
    home: Path,
    path: Path,
    code: tuple[str, Sequence[tuple[str, Any]]],
    name: str,
    tools: Sequence[messages.ToolInfo],
) -> None:
    """Store a notebook's tools; does nothing if that fails.

    Args:
        home: The folder of mcp-notebook's own files.
        path: The notebook.
        code: What was run, as `notebook_reader.describe_code` returns it.
        name: The notebook's name.
        tools: Its tools, in order.
    """
    place = _find_place(home, path)
    try:
        in_source = [tool.name for tool in list_source_tools(code[1])]
        content = json.encode(Offer(hash_code(code), name, list(tools), in_source))
        if len(content) > MAX_OFFER_BYTES:
            place.unlink(missing_ok=True)
            return
        write_private(place, content.decode())
        offers = sorted(place.parent.glob("*.json"), key=lambda each: each.stat().st_mtime)
        for old in offers[:-MAX_OFFERS]:
            old.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # not essential
        logger.debug("the tools of %s are not kept: %s", path, error)


def find_offer(home: Path, path: Path) -> Offer | None:
    """Return what a notebook's current code offered when it last ran, or else what it declares.

    Returns:
        The offer; without a hash of the code if that has not run. None if nothing is known.
    """
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - touches no disk
    offer = find_last_offer(home, path)
    try:
        if not path.is_file():  # a pipe can be read once only
            return None
        code = read_code(path)
        if offer is not None and offer.code == code.digest:
            return offer
        names = {tool.name for tool in code.tools}.union(offer.in_source if offer else ())
        late = [_mark(tool) for tool in (offer.tools if offer else ()) if tool.name not in names]
        return Offer("", path.stem, [*code.tools, *late]) if code.tools or late else None
    except (NotebookError, OSError, ValueError) as error:  # reported when the notebook is run
        logger.debug("the tools of %s are not known before it runs: %s", path, error)
        return None


def _mark(tool: messages.ToolInfo) -> messages.ToolInfo:
    return structs.replace(tool, description=f"{tool.description}\n\n{_AS_BEFORE}".lstrip())


def find_last_offer(home: Path, path: Path) -> Offer | None:
    """Return what a notebook offered when it last ran, even with other code; None if unknown.

    Args:
        home: The folder of mcp-notebook's own files.
        path: The notebook's absolute path.
    """
    place = _find_place(home, path)
    try:
        return read_private_json(place, Offer, MAX_OFFER_BYTES) if place.exists() else None
    except (OSError, ValueError) as error:
        logger.debug("the last tools of %s cannot be read: %s", path, error)
        return None


def drop_offer(home: Path, path: Path) -> None:
    """Forget what a notebook offered when it last ran; does nothing if that fails.

    Args:
        home: The folder of mcp-notebook's own files.
        path: The notebook's absolute path.
    """
    try:
        _find_place(home, path).unlink(missing_ok=True)
    except OSError as error:  # not essential
        logger.debug("the last tools of %s cannot be removed: %s", path, error)


def _find_place(home: Path, path: Path) -> Path:
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()
    return home / "offers" / f"{digest[:32]}.json"
