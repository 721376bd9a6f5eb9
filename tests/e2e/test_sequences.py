"""Whatever is done in whatever order, clients see and get what a small model says.

hypothesis makes up sequences of what users and clients do: cells that define, redefine and delete
tools, calls that are answered, wait, are cancelled or interrupted, kernels that are restarted or
killed, clients that go and come back. Each step is done in the real system (`whole_system`) and in
the model (`notebook_model`), and then both are compared.

``pytest -m slow tests/e2e/test_sequences.py --sequences-minutes 60`` goes on for an hour, with new
sequences each time; without the option a few are run.
"""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from clients import TRANSPORTS, text_of
from desk import LIMIT
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from live import LiveKernel
from mcp import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult
from notebook_model import (
    ARGUMENTS,
    SHAPES,
    Function,
    Joined,
    Listed,
    Notebook,
    Options,
    Outcome,
    marked,
)
from whole_system import Connection, Listing, System, running

pytestmark = pytest.mark.slow

SEQUENCES, STEPS = 10, 15
NAMES = ("alpha", "beta", "gamma")
LABELS = ("sales", "stock")
FORMER = re.compile(r"The tool '[^']*' of the notebook '[^']*' is gone\. ")
UNLOADED = "The call was lost: The notebook unloaded mcp_notebook."
INTERRUPTED = "The user interrupted the call in the notebook."
RESTARTED = ("The call was lost: The kernel was restarted.", INTERRUPTED)
"""The interrupt that a restart begins with may be all that is heard, if the rest comes late."""


@dataclass(frozen=True)
class Definition:
    """A cell that defines a function, and perhaps a tool."""

    name: str
    shape: int
    is_coroutine: bool
    fails: bool
    described: bool
    way: str
    options: Options

    def function(self, number: int) -> Function:
        """Return the function."""
        function = Function(
            self.name,
            number,
            SHAPES[self.shape],
            self.is_coroutine,
            self.fails,
            self.described,
        )
        return marked(function, self.options) if self.way == "decorator" else function

    def cell(self, function: Function) -> str:
        """Return the cell."""
        words = f"--run {self.options.run}" if self.options.run != "main" else ""
        keywords = f"run={self.options.run!r}"
        if self.options.name is not None:
            words += f" --name {self.options.name}"
            keywords += f", name={self.options.name!r}"
        return {
            "magic": f"%%mcp_tool {words}\n{function.source}",
            "decorator": "from mcp_notebook import mcp_tool\n"
            f"@mcp_tool({keywords})\n{function.source}",
            "line": f"{function.source}\n%mcp_tool {self.name} {words}",
            "plain": function.source,
        }[self.way]

    def apply(self, notebook: Notebook, function: Function) -> None:
        """Do it in the model."""
        notebook.define(function, None if self.way == "plain" else self.options)


names = st.sampled_from(NAMES)
definitions = st.builds(
    Definition,
    names,
    st.integers(0, len(SHAPES) - 1),
    is_coroutine=st.booleans(),
    fails=st.sampled_from([False, False, False, True]),
    described=st.booleans(),
    way=st.sampled_from(["magic", "decorator", "line", "plain"]),
    options=st.builds(Options, st.none() | names, st.sampled_from(["main", "main", "thread"])),
)
picks = st.integers(0, 11)
"""Which one of those that there are."""
arguments_of_calls = st.none() | st.sampled_from(ARGUMENTS)
"""None: those that fit."""


@dataclass(eq=False)
class Pending:
    """A call that is not answered."""

    site: "Site"
    connection: Connection
    tool: str
    """Its name in its kernel."""
    arguments: Mapping[str, Any]
    future: "Future[CallToolResult]"
    on_loop: bool = False
    """It is a coroutine on the main thread's loop."""
    expected: Outcome | None = None
    """What it will answer; None: its turn has not come."""

    @property
    def is_held(self) -> bool:
        """Whether it is a coroutine whose loop stands still: a cell or a call has the thread."""
        return self.on_loop and self.site.main is not None

    @property
    def ticket(self) -> str:
        return str(self.arguments.get("ticket", ""))


@dataclass(eq=False)
class BusyCell:
    """A cell that waits."""

    request: str
    ticket: str
    then: Definition | None
    function: Function


class Site:
    """A kernel, what the model says about it, and what it is doing."""

    def __init__(self, kernel: LiveKernel, label: str) -> None:
        self.kernel, self.label = kernel, label
        self.notebook = Notebook()
        self.main: Pending | BusyCell | None = None
        """What holds the main thread."""
        self.queue: list[Pending] = []
        """Calls for the main thread whose turn has not come, as far as can be told."""
        self.waiting: list[Pending] = []
        """Calls that wait without holding the main thread."""

    @property
    def pending(self) -> list[Pending]:
        """All its calls that are not answered."""
        on_main = [self.main] if isinstance(self.main, Pending) else []
        return [*on_main, *self.waiting, *self.queue]


class Rig:
    """The system that sequences are run in, made anew when one has failed; and the counts."""

    def __init__(self) -> None:
        self._stack: ExitStack | None = None
        self._system: System
        self.sequences = self.steps = self.numbers = 0

    def system(self) -> System:
        if self._stack is None:
            self._stack = ExitStack()
            home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
            self._stack.callback(shutil.rmtree, home, ignore_errors=True)
            self._system = self._stack.enter_context(running(home))
        return self._system

    def discard(self) -> None:
        if self._stack is not None:
            stack, self._stack = self._stack, None
            stack.close()


class Sequences(RuleBasedStateMachine):
    """One sequence."""

    rig: ClassVar[Rig]

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.ghosts: list[Pending] = []
        """Calls that were cancelled before their turn: their code may begin, but must end."""
        self.sites: list[Site] = []
        self.rig.sequences += 1
        self.system = self.rig.system()
        self.desk = self.system.desk
        self.connections = self.system.connections
        self.sites = [
            Site(kernel, label) for kernel, label in zip(self.system.kernels, LABELS, strict=True)
        ]
        self.http = Joined()
        self.joined = {
            connection: self.http if connection.transport == "http" else Joined()
            for connection in self.connections
        }
        for site in self.sites:
            site.kernel.ok("%unload_ext mcp_notebook")
            site.kernel.ok("%reset -f")
        self._load(self.sites[0], LABELS[0])

    def teardown(self) -> None:
        error = sys.exc_info()[1]
        try:
            if error is None:
                for site in self.sites:
                    while site.main or site.waiting:
                        self._release(site.main or site.waiting[0])
        except BaseException:
            self._broken()
            raise
        if isinstance(error, Exception):
            error.add_note("\n".join(["The sequence:", *self.log]))
            self._broken()
        elif error is not None:  # hypothesis has no more data for this sequence
            self._broken()

    def _broken(self) -> None:
        for site in self.sites:
            for call in site.pending:
                call.future.cancel()
        self.rig.discard()

    @initialize(cells=st.lists(definitions, min_size=1, max_size=3))
    def begin(self, cells):
        self._define(self.sites[0], cells)

    # -- cells -------------------------------------------------------------------------------------

    @property
    def free(self) -> list[Site]:
        """Where a cell with our magics can run now."""
        return [site for site in self.sites if site.notebook.loaded and site.main is None]

    @precondition(lambda self: self.free)
    @rule(pick=picks, cells=st.lists(definitions, min_size=1, max_size=3))
    def define(self, pick, cells):
        self._define(self.free[pick % len(self.free)], cells)

    def _define(self, site: Site, cells: list[Definition]) -> None:
        for definition in cells:
            function = definition.function(self._number())
            self._say(f"{site.label}: {definition.cell(function)!r}")
            site.kernel.ok(definition.cell(function))
            definition.apply(site.notebook, function)

    @precondition(lambda self: self.free)
    @rule(pick=picks, name=names)
    def define_a_prompt(self, pick, name):
        site = self.free[pick % len(self.free)]
        cell = f"%%mcp_prompt text(x: int) --name {name}\nPrompt {self._number()} on {{x}}."
        self._say(f"{site.label}: {cell!r}")
        site.kernel.ok(cell)
        site.notebook.prompt(name)

    @precondition(lambda self: any(site.notebook.variables for site in self.free))
    @rule(pick=picks, name=picks, how=st.sampled_from(["del {}", "{} = 7"]))
    def take_the_function_away(self, pick, name, how):
        sites = [site for site in self.free if site.notebook.variables]
        site = sites[pick % len(sites)]
        variables = list(site.notebook.variables)
        variable = variables[name % len(variables)]
        self._say(f"{site.label}: {how.format(variable)}")
        site.kernel.ok(how.format(variable))
        if how.startswith("del"):
            del site.notebook.variables[variable]
        else:
            site.notebook.variables[variable] = None
        site.notebook.follow()

    @precondition(lambda self: any(site.notebook.tools for site in self.free))
    @rule(pick=picks, name=picks)
    def remove(self, pick, name):
        sites = [site for site in self.free if site.notebook.tools]
        site = sites[pick % len(sites)]
        tools = list(site.notebook.tools)
        tool = tools[name % len(tools)]
        cell = f"from mcp_notebook import registry; registry.remove({tool!r})"
        self._say(f"{site.label}: {cell}")
        site.kernel.ok(cell)
        del site.notebook.declared[tool]

    @precondition(lambda self: any(any(site.notebook.variables.values()) for site in self.free))
    @rule(pick=picks, name=picks)
    def offer_again(self, pick, name):
        sites = [site for site in self.free if any(site.notebook.variables.values())]
        site = sites[pick % len(sites)]
        functions = [function for function in site.notebook.variables.values() if function]
        function = functions[name % len(functions)]
        self._say(f"{site.label}: %mcp_tool {function.name}")
        site.kernel.ok(f"%mcp_tool {function.name}")
        site.notebook.offer(function, function.mark or Options())
        site.notebook.follow()

    @precondition(lambda self: self.free)
    @rule(pick=picks)
    def reset(self, pick):
        site = self.free[pick % len(self.free)]
        self._say(f"{site.label}: %reset -f")
        site.kernel.ok("%reset -f")
        site.notebook.variables.clear()
        for prompt in site.notebook.prompts:
            del site.notebook.declared[prompt]
        site.notebook.follow()

    @precondition(lambda self: any(site.notebook.tools for site in self.free))
    @rule(pick=picks, name=picks, arguments=arguments_of_calls)
    def call_in_a_cell(self, pick, name, arguments):
        sites = [site for site in self.free if site.notebook.tools]
        site = sites[pick % len(sites)]
        tool = list(site.notebook.tools.values())[name % len(site.notebook.tools)]
        given = dict(tool.function.shape.fitting if arguments is None else arguments)
        code = f"get_ipython().run_line_magic('mcp', {f'call {tool.name} ' + _json(given)!r})"
        self._say(f"{site.label}: {code}")
        output = site.kernel.ok(code)
        expected = tool.function.answer(given)
        assert expected.text in output.stdout
        assert ("The client would get an error" in output.stdout) == (expected.kind == "error")

    @precondition(lambda self: self.free)
    @rule(pick=picks)
    def reload(self, pick):
        site = self.free[pick % len(self.free)]
        self._say(f"{site.label}: %reload_ext mcp_notebook")
        site.kernel.ok(_named(site.label, "%reload_ext mcp_notebook"))
        self._lost(site, UNLOADED)
        declared = site.notebook.declared
        self._go(site)
        self._come(site)
        site.notebook.declared = declared

    @precondition(lambda self: self.free)
    @rule(pick=picks)
    def unload(self, pick):
        site = self.free[pick % len(self.free)]
        self._say(f"{site.label}: %unload_ext mcp_notebook")
        site.kernel.ok("%unload_ext mcp_notebook")
        self._lost(site, UNLOADED)
        self._go(site)

    @property
    def unloaded(self) -> list[Site]:
        return [site for site in self.sites if not site.notebook.loaded and site.main is None]

    @precondition(lambda self: self.unloaded)
    @rule(pick=picks, label=st.sampled_from(LABELS))
    def load(self, pick, label):
        sites = self.unloaded
        self._load(sites[pick % len(sites)], label)

    def _load(self, site: Site, label: str) -> None:
        self._say(f"{label}: %load_ext mcp_notebook")
        site.kernel.ok(_named(label, "%load_ext mcp_notebook"))
        site.label = label
        self._come(site)

    def _come(self, site: Site) -> None:
        site.notebook.load()
        for joined in set(self.joined.values()):
            joined.come(site.notebook, site.label)

    def _go(self, site: Site) -> None:
        site.notebook.unload()
        for joined in set(self.joined.values()):
            joined.go(site.notebook)

    def _lost(self, site: Site, *reasons: str) -> None:
        """All calls of a site are answered with one of these, and their code has stopped."""
        for call in site.pending:
            self._answered(call.future, *(Outcome(reason, "error") for reason in reasons))
        self._ended(*site.waiting)
        site.main, site.queue, site.waiting = None, [], []

    # -- calls -------------------------------------------------------------------------------------

    @property
    def room(self) -> bool:
        return sum(len(site.pending) for site in self.sites) < 8

    @precondition(lambda self: self.room)
    @rule(
        calls=st.lists(
            st.tuples(picks, picks, st.booleans(), arguments_of_calls), min_size=1, max_size=4
        )
    )
    def call(self, calls):
        started = []
        for client, target, full, arguments in calls:
            connection = self.connections[client % len(self.connections)]
            name, given = self._target(connection, target, full, arguments)
            self._say(f"{connection} calls {name} with {given}")
            started.append((connection, name, given, connection.call(name, given)))
        for connection, name, given, future in started:
            found = self.joined[connection].find(name)
            if isinstance(found, Outcome):
                self._answered(future, found)
                continue
            notebook, tool = found
            site = self._site(notebook)
            if site.main is not None and tool.options.run == "main":
                site.queue.append(Pending(site, connection, tool.name, given, future))
            else:
                self._answered(future, tool.function.answer(given))

    @precondition(lambda self: self.room)
    @rule(client=picks, wanted=picks, full=st.booleans())
    def call_and_wait(self, client, wanted, full):
        connection = self.connections[client % len(self.connections)]
        name, given = self._target(connection, wanted, full, None)
        found = self.joined[connection].find(name)
        if isinstance(found, Outcome):
            return
        notebook, tool = found
        site = self._site(notebook)
        given["ticket"] = f"call-{self._number()}"
        queued = site.main is not None and tool.options.run == "main"
        if queued and any(call.ticket for call in site.queue):
            return  # which of the two comes first nobody could tell
        self._say(f"{connection} calls {name} with {given}, which waits")
        future = connection.call(name, given)
        call = Pending(site, connection, tool.name, given, future)
        if queued:
            site.queue.append(call)
        else:
            on_loop = tool.options.run == "main" and not tool.holds_main
            self._began(call, holds_main=tool.holds_main, on_loop=on_loop)

    def _target(self, connection, target, full, arguments):
        """Choose a name, mostly one that is there, and arguments."""
        joined = self.joined[connection]
        there = list(joined.full_names if full else joined.names)
        choices = [*there, *there, *NAMES, "sales_alpha", "sales.alpha"]
        name = choices[target % len(choices)]
        found = joined.find(name)
        fitting = {} if isinstance(found, Outcome) else found[1].function.shape.fitting
        return name, dict(fitting if arguments is None else arguments)

    def _began(self, call: Pending, *, holds_main: bool, on_loop: bool) -> None:
        call.on_loop = on_loop
        call.expected = self._outcome(call)
        self.desk.wait_began(call.ticket)
        if holds_main:
            call.site.main = call
        else:
            call.site.waiting.append(call)

    def _outcome(self, call: Pending) -> Outcome:
        """Return what a call answers whose turn is now."""
        tool = call.site.notebook.tools.get(call.tool)
        if tool is None:
            return Outcome(f"Unknown tool: {call.tool!r}", "error")
        return tool.function.answer(call.arguments)

    @precondition(lambda self: any(site.main is None for site in self.sites))
    @rule(pick=picks, then=st.none() | definitions)
    def keep_a_cell_running(self, pick, then):
        sites = self.free or [site for site in self.sites if site.main is None]
        site = sites[pick % len(sites)]
        if not site.notebook.loaded:
            then = None
        elif then is not None and then.way == "magic":
            then = None  # a cell of its own
        ticket = f"cell-{self._number()}"
        function = (then or Definition("f", 0, False, False, False, "", Options())).function(
            self._number()
        )
        code = f"import desk\ndesk.wait({ticket!r})\n" + (then.cell(function) if then else "")
        self._say(f"{site.label}: {code!r}")
        site.main = BusyCell(site.kernel.start(code), ticket, then, function)
        self.desk.wait_began(ticket)

    @property
    def unanswered(self) -> list[Pending]:
        return [call for site in self.sites for call in site.pending]

    @precondition(lambda self: any(site.main or site.waiting for site in self.sites))
    @rule(pick=picks)
    def let_go_on(self, pick):
        all_of_them = [site.main for site in self.sites if site.main is not None]
        all_of_them += [call for site in self.sites for call in site.waiting if not call.is_held]
        self._release(all_of_them[pick % len(all_of_them)])

    def _release(self, what: Pending | BusyCell) -> None:
        self._say(f"{what.ticket} goes on")
        self.desk.release(what.ticket)
        if isinstance(what, BusyCell):
            (site,) = (site for site in self.sites if site.main is what)
            output = site.kernel.finish(what.request)
            assert output.error is None, output.text
            if what.then is not None:
                what.then.apply(site.notebook, what.function)
            self._main_is_free(site)
            return
        assert what.expected is not None
        self._answered(what.future, what.expected)
        self._over(what)

    @precondition(lambda self: self.unanswered)
    @rule(pick=picks)
    def cancel(self, pick):
        call = self.unanswered[pick % len(self.unanswered)]
        self._say(f"{call.connection} cancels {call.tool} {call.ticket}")
        call.future.cancel()
        if call in call.site.queue:
            call.site.queue.remove(call)
            self.ghosts.append(call)
        elif call.is_held:
            call.site.waiting.remove(call)
            self.ghosts.append(call)
        else:
            self._over(call)

    @precondition(lambda self: any(not site.queue for site in self.sites))
    @rule(pick=picks)
    def interrupt(self, pick):
        sites = [site for site in self.sites if not site.queue]
        site = sites[pick % len(sites)]
        self._say(f"{site.label}: interrupt")
        os.kill(site.kernel.pid, signal.SIGINT)
        if isinstance(site.main, BusyCell):
            output = site.kernel.finish(site.main.request)
            assert "KeyboardInterrupt" in str(output.error)
            self._main_is_free(site)
            return
        for call in [site.main] if site.main else list(site.waiting):
            self._answered(call.future, Outcome(INTERRUPTED, "error"))
            self._over(call)

    def _over(self, call: Pending) -> None:
        """A call is answered, or nobody waits for it, and its code ends."""
        self._ended(call)
        if call.site.main is call:
            self._main_is_free(call.site)
        else:
            call.site.waiting.remove(call)

    def _main_is_free(self, site: Site) -> None:
        """Those that waited for the main thread come to their turn."""
        site.main = None
        for call in site.queue:
            tool = site.notebook.tools.get(call.tool)
            if tool and tool.function.waits(call.arguments) and not tool.function.is_coroutine:
                site.queue.remove(call)  # those before and behind it cannot be told apart
                self._began(call, holds_main=True, on_loop=False)
                return
        queue, site.queue = site.queue, []
        for call in queue:
            tool = site.notebook.tools.get(call.tool)
            if tool and tool.function.waits(call.arguments):
                self._began(call, holds_main=False, on_loop=True)
            else:
                self._answered(call.future, self._outcome(call))

    # -- what ends ---------------------------------------------------------------------------------

    @rule(
        what=st.sampled_from([*["http"] * 5, "stdio", "kill", "restart"]),
        pick=picks,
        again=st.booleans(),
    )
    def go_and_come_back(self, what, pick, again):
        # One rule, since all of them but the first take seconds.
        if what in TRANSPORTS:
            ways = [each for each in self.connections if each.transport == what]
            self._reconnect(ways[pick % len(ways)])
        else:
            self._leave(self.sites[pick % len(self.sites)], kill=what == "kill", again=again)

    def _leave(self, site: Site, *, kill: bool, again: bool) -> None:
        self._say(f"{site.label}: {'killed' if kill else 'restarted'}")
        self.system.leave(site.kernel, kill=kill)
        died = f"The kernel of {site.label!r} died, and the call was lost."
        for ticket in [call.ticket for call in site.waiting]:
            self.desk.wait_ended(ticket)
        self._lost(site, *([died] if kill else RESTARTED))
        self._go(site)
        site.notebook.restart()
        self._compare_lists()
        self.system.start_again(site.kernel)
        if again:
            self._load(site, site.label)

    def _reconnect(self, connection: Connection) -> None:
        if any(call.connection is connection for site in self.sites for call in site.pending):
            return
        self._say(f"{connection} goes and comes back")
        connection.close()
        connection.open()
        if connection.transport == "stdio":
            joined = self.joined[connection] = Joined()
            for kernel in self.system.oldest_first:
                (site,) = (site for site in self.sites if site.kernel is kernel)
                if site.notebook.loaded:
                    joined.come(site.notebook, site.label)

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_model_says(self):
        self.rig.steps += 1
        self._compare_lists()
        for site in self.sites:
            if site.main is None:
                output = site.kernel.ok("6 * 7")
                assert output.text.strip() == "42", output.text
                for ghost in self.ghosts:
                    if ghost.site is site and self.desk.waits(ghost.ticket):
                        self._ended(ghost)
            for call in (*site.waiting, *([site.main] if site.main else [])):
                assert self.desk.waits(call.ticket), f"{call.ticket} does not wait any more"
            for call in site.pending:
                assert not call.future.done() or call in site.queue, (
                    f"{call.ticket} was answered too early: {call.future}"
                )

    def _compare_lists(self) -> None:
        expected = {connection: self.joined[connection].listed for connection in self.connections}
        problems = self.system.shows(
            {connection: _shows(listed) for connection, listed in expected.items()}
        )
        assert not problems, f"{problems}\nexpected: {expected}"

    def _answered(self, future: "Future[CallToolResult]", *expected: Outcome) -> None:
        try:
            result = future.result(LIMIT)
        except MCPError as error:
            code, got = error.error.code, Outcome(error.error.message, "error")
        else:
            code = None
            got = Outcome(text_of(result), "error" if result.is_error else "value")
        assert code in (None, INVALID_PARAMS), got
        assert any(
            (
                got.kind == each.kind
                and (got.text == each.text if each.kind == "value" else each.text in got.text)
            )
            # For minutes the bridge remembers names, also those of the sequences before.
            or (
                each.text.startswith("Unknown tool")
                and got.kind == "error"
                and FORMER.match(got.text)
            )
            for each in expected
        ), f"answered {got}, not {expected}"

    def _ended(self, *calls: Pending) -> None:
        for call in calls:
            self.desk.wait_ended(call.ticket)

    def _site(self, notebook: Notebook) -> Site:
        return next(site for site in self.sites if site.notebook is notebook)

    def _number(self) -> int:
        # Over all sequences: the desk knows the tickets of those before.
        self.rig.numbers += 1
        return self.rig.numbers

    def _say(self, step: str) -> None:
        self.log.append(step)


def _named(label: str, code: str) -> str:
    """Return a cell in a notebook of this name, as VS Code tells it (and a reset forgets it)."""
    return f"__vsc_ipynb_file__ = '/nowhere/{label}.ipynb'\n{code}"


def _json(value: object) -> str:
    return json.dumps(value)


def _shows(expected: tuple[Listed, ...]):
    def check(listing: Listing) -> bool:
        told = tuple(
            Listed(tool.name, tool.description or "", tool.input_schema) for tool in listing
        )
        return told == expected

    return check


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.discard()


def test_whatever_is_done_in_whatever_order_is_as_the_model_says(rig, request, record_property):
    class Run(Sequences):
        pass

    Run.rig = rig
    minutes = request.config.getoption("--sequences-minutes")
    usual = settings(
        max_examples=SEQUENCES,
        stateful_step_count=STEPS,
        deadline=None,
        # Not shrunk: each try takes seconds. A failure tells its whole sequence in words.
        phases=[Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    try:
        if minutes is None:
            run_state_machine_as_test(Run, settings=usual)
        else:
            fresh = settings(usual, derandomize=False, database=None, stateful_step_count=30)
            until = time.monotonic() + 60 * minutes
            while time.monotonic() < until:
                run_state_machine_as_test(Run, settings=fresh)
    finally:
        record_property("sequences", rig.sequences)
        record_property("steps", rig.steps)
