"""The state of a notebook in the side panel of JupyterLab, Notebook 7 and VS Code, and its actions.

``%mcp panel`` and ``%mcp status`` show the same state. Runs on the endpoint's thread, but for these
magics and `SidePanel.describe_call`, which comes on one of its workers. Nothing here waits for the
main thread: it works while a cell or a call blocks that. `kernel.link.side_panel_updates` decides
when to send the state, and to whom.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Literal

from msgspec import Struct

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.errors import NoSuchTool
from mcp_notebook.kernel.calls.active_call import ActiveCall
from mcp_notebook.kernel.calls.call import ENDED, CallState
from mcp_notebook.kernel.calls.call_log import CallLog, LoggedCall
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.notebook.background_bridge import find_bridge
from mcp_notebook.kernel.notebook.call_cells import (
    describe_call,
    format_call,
    holds_secret,
    make_cell,
)
from mcp_notebook.kernel.notebook.call_table import describe_state
from mcp_notebook.kernel.notebook.cards.tool_facts import find_first_line
from mcp_notebook.kernel.notebook.consent_prompts import ConsentPrompts, Prompt
from mcp_notebook.kernel.notebook.panel.thumbnails import (
    shrink,
    summarize,
)
from mcp_notebook.kernel.notebook.proposing import Proposing
from mcp_notebook.kernel.notebook.public_address import find_public_address
from mcp_notebook.kernel.notebook.tool_lock import ToolLock
from mcp_notebook.kernel.notebook.tool_problems import list_problems
from mcp_notebook.kernel.tools.context import ClientProgram, Update, describe_program
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry
from mcp_notebook.settings.settings import SERVER_PATH, Settings
from mcp_notebook.text.wording import make_printable, shorten, strip_escapes
from mcp_notebook.wire import messages

LAST_CALLS = 25
"""Calls that have ended, in the panel."""
MAX_CALL = 300
"""Characters of a call on one line; the panel cuts it where its column ends."""
MAX_LINE = 200
"""Characters of any other line."""
MAX_TEXT = 200_000
"""Maximum characters of one result."""
MAX_PICTURES = 8
"""Pictures of one result."""
MAX_PICTURE = 8 * 2**20
"""Bytes of one of them."""
_LARGE = "# Large arguments are not kept: put yours here."
_RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Pictures that a page can show without running anything in them."""


class PanelSource(Struct, frozen=True, kw_only=True):
    """The parts of the notebook that its state is read from."""

    registry: ToolRegistry
    """Its tools."""
    lock: ToolLock
    """What they were when they were locked."""
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
    show: Callable[[], bool] = lambda: False
    """Opens the panel in the pages of the notebook; returns whether there is one."""

    @property
    def log(self) -> CallLog:
        """The log of calls."""
        return self.invoker.log

    def find_addresses(self) -> tuple[str, ...]:
        """Return where clients reach the notebook over HTTP, in words."""
        bridge = find_bridge(self.settings)
        return tuple(filter(None, [f"`{bridge.url}`" if bridge else None, self.server_address]))


class SidePanel:
    """The view that watchers have of one notebook (`kernel.link.side_panel_updates.NotebookView`).

    Args:
        source: The parts of the notebook.
        prompts: Its open questions; None if no person can be asked.
        proposing: The cells that clients propose.
    """

    def __init__(
        self, source: PanelSource, prompts: ConsentPrompts | None, proposing: Proposing
    ) -> None:
        self._proposing = proposing
        self._source = source
        self._prompts = prompts
        self._clients: dict[str, float] = {}
        """When each connected program was first seen."""
        self.frontends: frozenset[messages.Frontend] = frozenset()
        """Those that have it open."""

    @property
    def log(self) -> CallLog:
        """Tells of the calls."""
        return self._source.log

    def read(self, progress: Mapping[int, Update]) -> messages.NotebookState:
        """Return all that there is to see now.

        Args:
            progress: What open calls have reported, by their numbers in the log.
        """
        source = self._source
        ended = [call for call in self.log.list_calls() if call.state in ENDED]
        counts = self.log.count_calls()
        names = source.get_listed_names()
        prompts = () if self._prompts is None else self._prompts.open_prompts
        return messages.NotebookState(
            name=source.get_name(),
            kernel=source.kernel,
            addresses=list(source.find_addresses()),
            problems=list(list_problems(source.registry, source.get_refusal())),
            clients=self._list_clients(),
            tools=[
                messages.SeenTool(
                    name=tool.name,
                    description=_make_line(find_first_line(tool)),
                    kind=tool.kind_word,
                    listed_as=names[tool.name].name if tool.name in names else None,
                    on=tool.name not in source.registry.switched_off,
                    effect=_find_effect(tool),
                    calls=counts.tools[tool.name],
                    errors=counts.tool_failures[tool.name],
                    cell=tool.cell,
                    cell_deleted=tool.cell in source.registry.deleted_cells,
                    changes=[*map(_make_line, source.lock.describe(tool, self.log.list_calls))],
                )
                for tool in source.registry.tools
            ],
            open_calls=[
                self._show_open(call, progress.get(call.number)) for call in source.invoker.calls
            ],
            questions=list(map(_show_question, prompts)),
            ended_calls=list(map(self._show_ended, ended[: -LAST_CALLS - 1 : -1])),
            number_of_calls=counts.calls,
            proposes=self._proposing.is_on,
            proposals=self._proposing.queue.describe(),
            accepted=self._proposing.accepted.describe(),
        )

    def describe_call(
        self, request: messages.AskCall
    ) -> tuple[messages.CallDetails, Sequence[bytes]]:
        """Return what is known of a call, and the requested part; on any thread."""
        call = self.log.find(request.number)
        if call is None:
            return messages.CallDetails(id=request.id, is_known=False), ()
        result = self.log.find_result(request.number)
        content = () if result is None else result.content
        if request.as_cell:
            return _record(request.id, call, result)
        pictures = [
            block
            for block in content
            if isinstance(block, Image)
            and block.mime_type in _RASTER
            and isinstance(block.data, bytes)
        ][:MAX_PICTURES]
        if request.picture is not None:
            return _attach(request, pictures)
        text = "\n".join(block.text for block in content if isinstance(block, Text))
        if call.error is not None:  # without secrets
            text = call.error
        elif not text and result is not None and result.structured is not None:
            text = json.dumps(result.structured, indent=2, ensure_ascii=False, default=str)
        source = format_call(call.tool, call.arguments)
        gap = _find_gap(call)
        details = messages.CallDetails(
            id=request.id,
            source=f"{_LARGE}\n{source}" if gap == "large" else source,
            gap=gap,
            arguments=json.dumps(call.arguments, indent=2, ensure_ascii=False, default=str),
            result=strip_escapes(text[:MAX_TEXT]) + ("…" if len(text) > MAX_TEXT else ""),
            is_kept=result is not None or call.error is not None,
            pictures=[picture.mime_type for picture in pictures],
        )
        return details, ()

    def act(self, request: messages.PanelAction) -> str:
        """Do what a person wants, and return a sentence about it.

        Raises:
            NoSuchTool: There is no such tool.
            NoSuchQuestion: The question is not open.
            NotebookError: The lock cannot be written.
            ProposalError: It cannot be done with the proposal now.
        """
        registry = self._source.registry
        names = tuple(tool.name for tool in registry.tools)
        match request:
            case messages.AnswerConsent():
                assert self._prompts is not None
                return self._prompts.decide(request.number, request.decision)
            case messages.SwitchTool(tool=name, on=on):
                if not registry.switch(name, on=on):
                    raise NoSuchTool(name, names, is_any=True)
                return f"Clients can call {name} again." if on else f"Clients no longer see {name}."
            case messages.RemoveTool(tool=name) | messages.LockTool(tool=name):
                tool = registry.get(name)
                if tool is None:
                    raise NoSuchTool(name, names, is_any=True)
                if isinstance(request, messages.LockTool):
                    return self._source.lock.renew(tool)
                registry.remove(name, reason="Its user removed it in the side panel.")
                return f"Removed {name}. Its function is still defined."
            case _:
                return self._proposing.act(request)

    def open(self) -> bool:
        """Open the panel in the pages of the notebook; return whether there is one."""
        return self._source.show()

    def set_watched(self, frontends: frozenset[messages.Frontend]) -> None:
        """Note which frontends have a side panel open."""
        self.frontends = frontends
        self._proposing.set_watched(is_watched="Jupyter" in frontends)
        if self._prompts is not None:
            self._prompts.set_watched(frontends)

    def _list_clients(self) -> list[messages.SeenClient]:
        clients = _join_clients(self._source.list_clients())
        now = time.time()
        self._clients = {name: self._clients.get(name, now) for name in clients}
        return [
            messages.SeenClient(name=_make_line(name), number=number, since=self._clients[name])
            for name, number in clients.items()
        ]

    def _show_open(self, call: ActiveCall, progress: Update | None) -> messages.OpenCall:
        offset = time.time() - monotonic()
        progress = progress or Update()
        waits_for = ""
        if call.state is CallState.QUEUED:
            is_held = self._source.invoker.runs_cell and call.run == "main"
            waits_for = "the end of the cell" if is_held else "its turn"
        elif call.state is CallState.WAITING:
            waits_for = call.waits_for
        return messages.OpenCall(
            number=call.number,
            tool=call.tool,
            client=_make_line(describe_program(call.client.program)),
            call=describe_call(call.tool, call.shown_arguments, MAX_CALL),
            kind=call.kind,
            # Rounded, so that an unchanged call compares equal.
            came=round(call.arrived + offset, 1),
            began=None if call.began is None else round(call.began + offset, 1),
            waits_for=waits_for,
            task=call.task_id,
            is_stopping=call.is_stopping or call.stop_request is not None,
            progress=progress.done,
            total=progress.total,
            message=_make_line(progress.message or ""),
        )

    def _show_ended(self, call: LoggedCall) -> messages.EndedCall:
        return messages.EndedCall(
            number=call.number,
            tool=call.tool,
            client=_make_line(call.client_label),
            call=describe_call(call.tool, call.arguments, MAX_CALL),
            kind=call.kind,
            came=call.came,
            state=describe_state(call),
            seconds=call.run_seconds,
            is_error=call.has_failed,
            result=self._summarize(call),
            has_picture=not _RASTER.isdisjoint(call.kinds),
        )

    def _summarize(self, call: LoggedCall) -> str:
        if call.stopped_by:
            return f"by {call.stopped_by}"
        if call.error is not None:
            return _make_line(call.error.strip().partition("\n")[0])
        result = self.log.find_result(call.number)
        return ", ".join(call.kinds) if result is None else make_printable(summarize(result))


def _find_gap(call: LoggedCall) -> Literal["", "secret", "large"]:
    if holds_secret(call.arguments):
        return "secret"
    return "" if call.is_complete else "large"


def _attach(
    request: messages.AskCall, pictures: Sequence[Image]
) -> tuple[messages.CallDetails, Sequence[bytes]]:
    """Return the requested picture; none if there is none, or if it is too large."""
    picture = next(iter(pictures[request.picture or 0 :]), None)
    if picture is None:
        found = None
    elif request.is_small:
        found = shrink(picture.data)
    else:
        found = (picture.data, picture.mime_type) if len(picture.data) <= MAX_PICTURE else None
    if found is None:
        return messages.CallDetails(id=request.id, is_kept=False), ()
    data, mime_type = found
    return messages.CallDetails(id=request.id, pictures=[mime_type]), [data]


def _record(
    request: int, call: LoggedCall, result: Result | None
) -> tuple[messages.CallDetails, Sequence[bytes]]:
    """Return a call and its result as a cell."""
    if result is None and call.error is not None:
        result = Result([Text(call.error)], is_error=True)
    if result is None:
        return messages.CallDetails(id=request, is_kept=False), ()
    cell = json.dumps(make_cell(call, result), ensure_ascii=False, default=str)
    return messages.CallDetails(id=request, has_cell=True), [cell.encode(errors="replace")]


def _show_question(prompt: Prompt) -> messages.OpenQuestion:
    asked = round(time.time() - monotonic() + prompt.since, 1)
    return messages.OpenQuestion(
        number=prompt.number,
        tool=prompt.question.tool,
        text=prompt.question.text,
        asked=asked,
        ends=asked + prompt.question.seconds,
        session=prompt.question.session,
    )


def _find_effect(tool: DeclaredTool) -> Literal["read-only", "destructive", ""]:
    hints = (tool.info.annotations or {}) if tool.info.kind == "tool" else {}
    if hints.get("readOnlyHint") is True:
        return "read-only"
    return "destructive" if hints.get("destructiveHint") is True else ""


def _make_line(text: str) -> str:
    """Return a string on one line that shows all of its characters."""
    return make_printable(shorten(strip_escapes(text[: 10 * MAX_LINE]), MAX_LINE))


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


def _join_clients(counts: Iterable[messages.ClientCount]) -> dict[str, int]:
    """Return the clients of all bridges: how many there are of each program."""
    numbers: Counter[str] = Counter()
    for client in counts:
        numbers[ClientProgram(client.name, client.version).label] += client.number
    return dict(sorted(numbers.items()))
