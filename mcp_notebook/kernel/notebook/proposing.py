"""``propose_cell``: the tool by which clients propose cells, and what it needs of the notebook.

It is a tool like the author's, so that consent, limits, permissions, tasks and logs are those of
calls. A call runs on a thread of its own and waits for a person's decision, also while a cell runs;
`proposals` holds it meanwhile. Nothing here inserts or runs anything. While the switch is on,
clients that may propose also read variables, and the sources of the cells.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from IPython.display import display
from msgspec import structs

from mcp_notebook.errors import ProposalError, ToolError
from mcp_notebook.kernel.calls.capture import current_capture
from mcp_notebook.kernel.calls.invoker import Invoker
from mcp_notebook.kernel.notebook.accepted_cells import AcceptedCells
from mcp_notebook.kernel.notebook.client_cells import ClientCells
from mcp_notebook.kernel.notebook.hidden_text import describe_hidden, parse_source
from mcp_notebook.kernel.notebook.inspection import Inspection
from mcp_notebook.kernel.notebook.loaded_extension import comes_from_jupyter
from mcp_notebook.kernel.notebook.proposals import Proposal, Proposals
from mcp_notebook.kernel.notebook.proposed_tools import list_tool_problems
from mcp_notebook.kernel.safe.text import replace_surrogates
from mcp_notebook.kernel.tools.context import describe_program
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool, make_own_resource, make_tool
from mcp_notebook.kernel.tools.options import ResourceOptions, ToolOptions
from mcp_notebook.text.terminal import print_data, print_output
from mcp_notebook.text.wording import make_printable
from mcp_notebook.wire import messages

Kind: TypeAlias = Literal["code", "markdown", "tool"]
NAME = "propose_cell"
"""The tool's name. An author's own tool of this name is served in its place."""
MAX_SOURCE = 20_000
"""Characters of a proposed cell."""
MAX_LINES = 1_000
"""Its lines and unseen characters, each of which a page shows by an element of its own."""
MAX_REASON = 2_000
"""Characters of its reason."""
LOOK = 0.5
"""Seconds between two looks whether a proposal's time is over."""
_PROPOSE = ToolOptions(
    title="Propose a cell",
    read_only=False,
    destructive=False,
    open_world=False,
    run="thread",
    task=True,
    timeout="7d",  # of a task, in place of the setting `call_timeout`
)
_CELLS = ResourceOptions(
    name="propose/cells",  # for permissions; authors cannot use it, because of its slash
    uri="notebook://notebook/cells",
    mime_type="application/json",
    title="Cells",
    run="thread",
    timeout="5s",
    read_only=True,
)
_OWN = (
    "A client would wait now until you decide about proposal {}. JupyterLab and Notebook 7 show "
    "it where it would go; elsewhere, `%mcp propose` does."
)
_WAITS = "A client proposes a cell: `%mcp propose` shows it."
SWITCHED_ON = (
    "Clients may propose cells. They also read the names and summaries of your variables, and the "
    "sources of this notebook's cells, with what looks like a secret masked. Nothing is inserted "
    "or run before you accept it."
)
_OFF = "The user does not let clients propose cells any more."
_TAKEN_NAME = " But rename your own tool `propose_cell`: it is served in place of this one."


class Proposing:
    """What one notebook has to do with proposed cells.

    Args:
        shell: The notebook's IPython.
        cells: Its cells, and its tools.
        invoker: Its calls.
        inspection: Its variables.
        is_headless: Whether it runs without a frontend.
    """

    def __init__(
        self,
        shell: Any,
        cells: ClientCells,
        invoker: Invoker,
        inspection: Inspection,
        *,
        is_headless: bool,
    ) -> None:
        self.queue = Proposals()
        """The open proposals."""
        self.accepted = AcceptedCells(shell.user_ns, cells.registry)
        """The cells that were accepted."""
        self.on_switch: Callable[[], None] = lambda: None
        """Called when clients may propose, or no longer; on any thread."""
        self.is_on = False
        """Whether clients may propose cells."""
        self._shell = shell
        self._cells = cells
        self._invoker = invoker
        self._inspection = inspection
        self._is_headless = is_headless
        self._sessions: set[str | None] = set()
        """The frontends that have run cells; of a headless notebook, the first is the bridge."""
        self._was_watched = self._is_watched = False
        self._told = 0
        """The newest proposal that the person was told of, or has seen."""
        self._own: tuple[DeclaredTool, ...] = ()
        """The tool and the resource; made when they are first needed."""

    # -- the switch --------------------------------------------------------------------------------

    def switch(self, *, on: bool) -> str:
        """Let clients propose cells, or no longer; on any thread.

        Returns:
            A sentence for the person.
        """
        if on and not self._own:
            self._own = (
                make_tool(self.propose_cell, _PROPOSE),
                make_own_resource(self._cells.read, _CELLS),
            )
        own = (self._inspection.tool, *(self._own if on else ()))
        self._cells.registry.built_in = {tool.name: tool for tool in own}
        self.is_on = on
        self.on_switch()
        if on:
            return SWITCHED_ON + ("" if self.is_listed else _TAKEN_NAME)
        for each in self.queue.undecided:
            self.queue.end(each, _OFF)
        return "Clients can no longer propose cells."

    @property
    def is_listed(self) -> bool:
        """Whether clients may propose, since no tool of the author's has the name."""
        return self.is_on and all(tool.name != NAME for tool in self._cells.registry.tools)

    def list_infos(self) -> Iterator[messages.ToolInfo]:
        """Yield what clients that may propose get, but for the variables."""
        if not self.is_listed:
            return
        tool, resource = self._own
        yield structs.replace(tool.info, proposes=True)
        uri = f"notebook://{quote(self._cells.file.describe(os.getpid())['name'], safe='')}/cells"
        yield structs.replace(resource.info, uri=uri, proposes=True)

    # -- the notebook ------------------------------------------------------------------------------

    def set_watched(self, *, is_watched: bool) -> None:
        """Note whether a page shows the side panel."""
        self._is_watched = is_watched
        self._was_watched |= is_watched

    def before_cell(self, cell: str | None, source: str) -> None:
        """Note that a cell is about to run; on the main thread."""
        self._sessions.add((self._shell.get_parent() or {}).get("header", {}).get("session"))
        if cell is not None:
            self._cells.run[cell] = source
            self.accepted.before_run(cell)

    def after_cell(self) -> str | None:
        """Note that a cell has run, and its tools are declared; on the main thread.

        Returns:
            A sentence on new proposals for a person whose frontend does not show them.
        """
        self.accepted.after_run()
        newest = max((each.shown.number for each in self.queue.undecided), default=0)
        is_new, self._told = newest > self._told, max(newest, self._told)
        return _WAITS if is_new and not self._is_watched else None

    def act(self, request: messages.AboutProposals) -> str:
        """Do what a person wants in a side panel; on any thread.

        Returns:
            A sentence about it.

        Raises:
            ProposalError: It cannot be done now.
        """
        match request:
            case messages.SwitchProposals():
                return self.switch(on=request.on)
            case messages.TakeProposal():
                return self.queue.take(request, self._place_again)
            case messages.SettleProposal():
                proposal = self.queue.settle(request)
                if request.outcome == "inserted":
                    self.accepted.add(proposal)
                return "Noted."
            case messages.RejectProposal():
                return self.queue.reject(request.number, request.word)
            case messages.UndoProposal():
                return self._undo(request.number)

    def describe(self) -> str:
        """Return whether clients may propose, and the open proposals, for ``%mcp propose``."""
        self._told = max((each.shown.number for each in self.queue.undecided), default=self._told)
        parts = [
            f"{each.number}. {make_printable(each.client)} proposes "
            + (f"another cell of `{each.tool}`" if each.tool else f"a {each.kind} cell")
            + f": {' '.join(each.reason.split())}\n"
            + "".join(f"   Note: {warning}\n" for warning in each.warnings)
            + "".join(f"   | {make_printable(line)}\n" for line in each.source.split("\n"))
            + f"   `%mcp propose accept {each.number}` puts it into the next cell; "
            f"`%mcp propose reject {each.number} why` tells the client."
            for each in self.queue.describe()
        ]
        if not self.is_on:
            return "Clients cannot propose cells; `%mcp propose on` lets them."
        return "\n\n".join(parts) or "No cell is proposed now; `%mcp propose off` turns this off."

    def _place_again(self, shown: messages.OpenProposal) -> tuple[messages.OpenProposal, str]:
        """Return a proposal with its place as it is now, and what has changed; "" for nothing."""
        try:
            placed = self._cells.place(shown)
        except ToolError:
            nowhere = structs.replace(shown, after=None, replaces=None, tool="", base=None)
            return nowhere, "The tool or the cell that this is for is gone."
        return placed, "" if placed == shown else f"The tool `{shown.tool}` has changed since then."

    def _undo(self, number: int) -> str:
        if self._invoker.runs_cell:
            raise ProposalError("A cell is running. Take it back when that has ended.")
        self._shell.kernel.io_loop.add_callback(self.accepted.undo, self.accepted.forget(number))
        return "Took back what only this cell had defined."

    # -- the tool ----------------------------------------------------------------------------------

    async def propose_cell(
        self,
        source: str,
        reason: str,
        kind: Kind = "code",
        after: str | None = None,
        replaces: str | None = None,
    ) -> None:
        """Propose a cell to the person who works in this notebook.

        The person sees it where it would go, and accepts, edits or rejects it; nothing is inserted
        or run before. Returns what was decided and, if the cell was run, its outputs. Propose one
        short cell at a time, and read the cells and variables (resources) first.

        Args:
            source: The whole source of the cell.
            reason: Why, in a sentence or two for the person.
            kind: The kind of cell; "tool" for one that declares a tool with `%%mcp_tool`.
            after: The name of a tool or the id of a cell below which it goes; else at the end.
            replaces: The name of the tool whose cell this source replaces.
        """
        call = next(call for call in self._invoker.calls if call.capture is current_capture())
        is_own = call.client.program is None
        if not is_own:
            self._check_person()
        program = describe_program(call.client.program)
        proposal = self.queue.add(
            self._check(
                program, source, reason, kind=kind, after=after or None, tool=replaces or ""
            ),
            owner=call.client.guest or program,
            is_task=lambda: is_own or call.task_id is not None,
        )
        if not self.is_on:  # since the call came
            self.queue.end(proposal, _OFF)
            raise ToolError(_OFF)
        if is_own:
            self._told = proposal.shown.number
            print_output(_OWN.format(proposal.shown.number))
            return
        call.wait_for("a person, who is asked in the notebook")
        answer = asyncio.wrap_future(proposal.answer)
        try:
            while not (await asyncio.wait({answer}, timeout=LOOK))[0]:
                self.queue.look(proposal)
        finally:
            call.resume()
            self.queue.end(proposal, "Its client no longer waits.")
        self._answer(proposal, answer.result())

    def _check_person(self) -> None:
        nobody = ""
        if self._is_headless and len(self._sessions) < 2:  # noqa: PLR2004 - with the bridge
            nobody = "No person has this notebook open: it runs without one."
        elif self._was_watched and comes_from_jupyter():
            nobody = "The notebook's page is closed, so that no person sees a proposal."
        if nobody and not self._is_watched:
            raise ToolError(f"{nobody} Write the cell into your answer instead.")

    def _answer(self, proposal: Proposal, text: str) -> None:
        """Print and display what the person saw, as the result."""
        if proposal.outputs is None:
            raise ToolError(text)
        print_output(text)
        others = self._cells.get_listed_names()
        for tool in self._cells.registry.tools:
            if proposal.state == "ran" and tool.cell == proposal.cell:
                name = others[tool.name].name if tool.name in others else tool.name
                print_output(f"The {tool.kind_word} `{name}` is listed now.")
        if proposal.edited is not None:
            print_data(f"The final source:\n\n{proposal.edited}\n")
        for output in proposal.outputs:
            _show_output(output)

    # -- what is proposed --------------------------------------------------------------------------

    def _check(
        self, client: str, source: str, reason: str, *, kind: Kind, **place: Any
    ) -> messages.OpenProposal:
        """Return a proposal that a person can be asked about, with its place.

        Raises:
            ToolError: It is not fit to be asked about; it says what to change.
        """
        source, reason = replace_surrogates(source), replace_surrogates(reason)
        if not source.strip() or not reason.strip():
            raise ToolError("The source and the reason must not be empty.")
        unseen = sum(not each.isprintable() for each in source if each != "\t")  # with "\n"
        if len(source) > MAX_SOURCE or unseen >= MAX_LINES or len(reason) > MAX_REASON:
            raise ToolError(
                f"A person has to read it: at most {MAX_SOURCE:,} characters are proposed, "
                f"{MAX_LINES:,} of them line breaks or unseen, with a reason of {MAX_REASON:,}."
            )
        tree = None
        if kind != "markdown":
            try:
                tree = parse_source(source)
                problems = [*list_tool_problems(source, tree, is_tool=kind == "tool")]
            except SyntaxError as error:
                line = "" if error.lineno is None else f" (line {error.lineno})"
                problems = [f"The source is not the code of a cell: {error.msg}{line}."]
            if problems:
                raise ToolError("\n".join(["Nobody was asked: first mend this.", *problems]))
        elif place["tool"]:
            raise ToolError("The cell of a tool is code: replace it with code.")
        hidden = describe_hidden(
            source, tree, lambda word: self._shell.automagic and self._shell.find_magic(word)
        )
        proposal = messages.OpenProposal(
            number=0,
            client=client,
            reason=make_printable(reason),
            kind=kind,
            source=source,
            digest=sha256(source.encode()).hexdigest(),
            asked=round(time.time(), 1),
            ends=0.0,
            warnings=[*map(make_printable, hidden)],  # they name what is in the source
            **place,
        )
        return self._cells.place(proposal)


def _show_output(output: Mapping[str, Any]) -> None:
    """Print or display an output of a cell, in nbformat's form, as a part of the call's result."""
    match output:
        case {"output_type": "stream", "text": str() | list() as text}:
            print_data("".join(map(str, text)))
        case {"output_type": "execute_result" | "display_data", "data": dict(data)}:
            display(data, raw=True)
        case {"output_type": "error", "ename": name, "evalue": value}:
            print_output(f"The cell raised {name}: {value}")
