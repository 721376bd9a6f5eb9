"""Reads the live panel's state from the notebook's tools, its log of calls and its bridges.

Runs on any thread; read-only. The notebook may change during this: each value is consistent by
itself, and the next update brings the rest. A call's result becomes a thumbnail: a line of text and
a picture of a few kilobytes. PIL is never imported for that; if the notebook has not loaded it,
only small pictures are shown.
"""

import io
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import ENDED, CallState
from mcp_notebook.kernel.calls.call_log import CallLog, LoggedCall
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.notebook.background_bridge import find_bridge
from mcp_notebook.kernel.notebook.call_table import MAX_CALL, format_seconds, format_time
from mcp_notebook.kernel.notebook.cards.tool_state import explain_missing_tools
from mcp_notebook.kernel.notebook.panel.panel_state import (
    ClientLine,
    EndedCall,
    OpenCall,
    PanelState,
    Thumbnail,
    ToolLine,
)
from mcp_notebook.kernel.notebook.public_address import find_public_address
from mcp_notebook.kernel.notebook.recording.call_cells import describe_call
from mcp_notebook.kernel.safe.libraries import find_imported
from mcp_notebook.kernel.tools.context import ClientProgram
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import SERVER_PATH, Settings
from mcp_notebook.text.wording import count, strip_escapes
from mcp_notebook.wire import messages

logger = logging.getLogger(__name__)

LAST_CALLS = 8
"""Calls that have ended, in the panel."""
_LONG_WAIT = 1.0
"""Seconds of waiting from which a call's line mentions it."""
_ENDED = frozenset({CallState.DONE, CallState.FAILED})
MAX_TEXT = 80
"""Characters of a thumbnail's text."""
MAX_BYTES = 6_000
"""Bytes of a thumbnail's picture."""
MAX_PIXELS = 50_000_000
"""Pixels of a picture that is decoded for its thumbnail."""
SIDES = (128, 64)
"""Maximal width and height of a thumbnail's picture, in pixels."""
_SMALLER = (1.0, 0.75, 0.5)
"""Scale factors to try until the picture has at most `MAX_BYTES`."""


@dataclass(frozen=True, kw_only=True)
class PanelSource:
    """Reads the panel's state."""

    registry: ToolRegistry
    """Its tools."""
    invoker: Invoker
    """Its calls and their log."""
    settings: Settings
    """Where the background bridge is."""
    kernel: str
    """The id of its record."""
    get_name: Callable[[], str]
    """Returns the notebook's name."""
    get_refusal: Callable[[], str | None]
    """Returns why the last bridge was refused, if it was."""
    get_listed_names: Callable[[], Mapping[str, messages.ListedName]]
    """Returns the tools that clients see under other names, by their own names."""
    list_clients: Callable[[], Iterable[messages.ClientCount]]
    """Returns the connected clients of all bridges."""
    server_address: str | None = None
    """Where the notebook's Jupyter Server serves its tools, in words."""
    _thumbnails: dict[int, Thumbnail] = field(default_factory=dict)
    """Cached thumbnails of the last calls, by number: a picture takes milliseconds."""

    @property
    def log(self) -> CallLog:
        """The log of calls."""
        return self.invoker.log

    def read(self) -> PanelState:
        """Return the current state."""
        logged = [call for call in self.invoker.log.list_calls() if call.state in ENDED]
        counts = self.invoker.log.count_calls()
        names = self.get_listed_names()
        last = {call.tool: call for call in logged}
        latest = logged[: -LAST_CALLS - 1 : -1]
        for number in self._thumbnails.keys() - {call.number for call in latest}:
            self._thumbnails.pop(number, None)
        return PanelState(
            notebook=self.get_name(),
            kernel=self.kernel,
            addresses=self.find_addresses(),
            clients=join_clients(self.list_clients()),
            tools=tuple(
                ToolLine(
                    name=tool.name,
                    listed_as=names[tool.name].name if tool.name in names else None,
                    calls=counts.tools[tool.name],
                    errors=counts.tool_failures[tool.name],
                    last=_describe_last(last.get(tool.name)),
                )
                for tool in self.registry.tools
            ),
            missing=tuple(explain_missing_tools(self.registry, self.get_refusal())),
            open_calls=tuple(map(self._describe_open, self.invoker.calls)),
            ended_calls=tuple(map(self._describe_ended, latest)),
            more_calls=max(counts.calls - len(latest), 0),
        )

    def find_addresses(self) -> tuple[str, ...]:
        """Return where clients reach the notebook over HTTP, in words."""
        bridge = find_bridge(self.settings)
        return tuple(filter(None, [f"`{bridge.url}`" if bridge else None, self.server_address]))

    def _describe_open(self, call: ActiveCall) -> OpenCall:
        program = call.client.program
        return OpenCall(
            number=call.number,
            tool=call.tool,
            client="this notebook" if program is None else program.label,
            doing=_describe_doing(call, runs_cell=self.invoker.runs_cell),
            is_stopping=call.is_stopping or call.stop_request is not None,
            on_main_thread=call.run == "main" and call.state is not CallState.QUEUED,
        )

    def _describe_ended(self, call: LoggedCall) -> EndedCall:
        return EndedCall(
            number=call.number,
            at=format_time(find_end(call)),
            text=describe_call(call.tool, call.arguments, MAX_CALL),
            client=call.client_label,
            outcome=_describe_outcome(call),
            is_error=call.has_failed,
            thumbnail=self._find_thumbnail(call),
        )

    def _find_thumbnail(self, call: LoggedCall) -> Thumbnail:
        if call.error is not None:  # the result may contain secrets, the error does not
            return make_thumbnail(Result([Text(call.error)], is_error=True))
        thumbnail = self._thumbnails.get(call.number)
        if thumbnail is None:
            result = self.invoker.log.find_result(call.number)
            if result is None:  # not kept, or not yet
                return Thumbnail(", ".join(call.kinds))
            thumbnail = self._thumbnails[call.number] = make_thumbnail(result)
        return thumbnail


def find_server_address(env: Mapping[str, str]) -> str | None:
    """Return where the notebook's Jupyter Server serves its tools, in words; None if it does not.

    Args:
        env: The kernel's environment variables, inherited from Jupyter Server.
    """
    path = env.get(SERVER_PATH)
    if path is None:
        return None
    public = find_public_address(env)
    if public is not None and public.origin is not None:
        return f"`{public.url}`"
    return f"`{path}` on this Jupyter server"


def join_clients(counts: Iterable[messages.ClientCount]) -> tuple[ClientLine, ...]:
    """Return the clients of all bridges, grouped by program."""
    numbers: Counter[str] = Counter()
    for client in counts:
        numbers[ClientProgram(client.name, client.version).label] += client.number
    return tuple(ClientLine(name=name, number=number) for name, number in sorted(numbers.items()))


def _describe_doing(call: ActiveCall, *, runs_cell: bool) -> str:
    """Return a call's state, with the time of its last change."""
    since = format_time(time.time() - (monotonic() - call.since))
    if call.is_stopping:
        return f"answered at {since}, and its code is still running"
    if call.state is CallState.WAITING:
        return f"waiting for {call.waits_for} since {since}"
    if call.state is CallState.QUEUED:
        turn = "the end of the cell" if runs_cell and call.run == "main" else "its turn"
        return f"waiting for {turn} since {since}"
    return f"{call.state!s} since {since}"


def _describe_last(call: LoggedCall | None) -> str:
    return "" if call is None else f"{format_time(find_end(call))}, {_describe_outcome(call)}"


def _describe_outcome(call: LoggedCall) -> str:
    if call.is_cached:
        return "done, from the cache"
    seconds = format_seconds(call.run_seconds)
    outcome = f"{call.state!s} in {seconds}" if call.state in _ENDED else str(call.state)
    is_long = call.queue_seconds >= _LONG_WAIT
    return outcome + (f", waited {format_seconds(call.queue_seconds)}" if is_long else "")


def find_end(call: LoggedCall) -> float:
    """Return when a call ended, in seconds since the epoch."""
    return call.came + call.queue_seconds + call.run_seconds


# -- thumbnails ------------------------------------------------------------------------------------


def make_thumbnail(result: Result) -> Thumbnail:
    """Return the thumbnail of a result."""
    text = summarize(result)
    picture = next((block for block in result.content if isinstance(block, Image)), None)
    if picture is None or result.is_error:
        return Thumbnail(text)
    data = _shrink(picture.data)
    return Thumbnail(text) if data is None else Thumbnail(text, *data)


def summarize(result: Result) -> str:
    """Return the first line of text, and counts of the other content blocks."""
    texts = [block.text for block in result.content if isinstance(block, Text)]
    lines = (line.strip() for text in texts for line in strip_escapes(text[:2_000]).splitlines())
    first = next(filter(None, lines), "")
    others = [block for block in result.content if not isinstance(block, Text)]
    kinds = dict.fromkeys(map(_name_kind, others))
    counts = [count(sum(_name_kind(block) == kind for block in others), kind) for kind in kinds]
    return ", ".join(filter(None, [*counts, shorten(first)]))


def _name_kind(block: ContentBlock) -> str:
    match block:
        case Image():
            return "picture"
        case Audio():
            return "sound"
        case ResourceLink():
            return "link"
        case Resource():
            return "document"
    return "text"


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Return a string on one line, cut to a length."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _shrink(data: Any) -> tuple[bytes, str] | None:
    """Return a small encoded picture and its MIME type; None if that is not possible."""
    if not isinstance(data, bytes):
        return None
    pil = find_imported("PIL.Image")
    if pil is None:
        is_small_png = data.startswith(b"\x89PNG") and len(data) <= MAX_BYTES
        return (data, "image/png") if is_small_png else None
    try:
        with pil.open(io.BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                return None  # a decompression bomb, perhaps
            return _encode(image.convert("RGBA"))
    except Exception:  # a picture of a kind that this PIL cannot read
        logger.debug("a picture has no thumbnail", exc_info=True)
        return None


def _encode(image: Any) -> tuple[bytes, str] | None:
    for factor in _SMALLER:
        small = image.copy()
        small.thumbnail(tuple(int(side * factor) for side in SIDES))
        buffer = io.BytesIO()
        small.save(buffer, format="PNG", optimize=True)
        if len(buffer.getvalue()) <= MAX_BYTES:
            return buffer.getvalue(), "image/png"
    return None
