"""Whatever is done in whatever order, clients see and get what a small model says.

hypothesis makes up sequences of what users and clients do: cells that define, redefine and delete
tools, prompts, resources and skills, calls, prompts and reads that are answered, wait, are
cancelled or interrupted, kernels that are restarted or killed, clients that go and come back. Each
step is done in the real system (`whole_system`) and in the model (`notebook_model`), and then both
are compared.

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
from dataclasses import dataclass, replace
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
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    GetPromptResult,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
)
from notebook_model import (
    ARGUMENTS,
    SHAPES,
    Function,
    Joined,
    Kind,
    Notebook,
    Options,
    Outcome,
    Skill,
    Tool,
    Uri,
    fill,
    list_variables,
    marked,
    write_texts,
)
from whole_system import Connection, System, running

from mcp_notebook.bridge.server.lists.resources import LEGACY_NOT_FOUND

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:resources/(un)?subscribe is removed"),
]

SEQUENCES, STEPS = 10, 15
NAMES = ("alpha", "beta", "gamma")
LABELS = ("sales", "stock")
FORMER = re.compile(r"The (tool|prompt|resource) '[^']*'( of the notebook '[^']*')? is gone\. ")
_VALUES = {"x": "5", "items": "a,b", "size": "small"}
"""Of the variables in the path of a URI."""
UNLOADED = "The call was lost: The notebook unloaded mcp_notebook."
INTERRUPTED = "The user interrupted the call in the notebook."
RESTARTED = ("The call was lost: The kernel was restarted.", INTERRUPTED)
"""The interrupt that a restart begins with may be all that is heard, if the rest comes late."""


@dataclass(frozen=True)
class Definition:
    """A cell that defines a function, and perhaps a tool, a prompt or a resource."""

    name: str
    shape: int
    is_coroutine: bool
    fails: bool
    described: bool
    way: str
    kind: Kind = "tool"
    served_name: str | None = None
    run: str = "main"

    @property
    def is_text(self) -> bool:
        """Whether the cell is the Markdown of a prompt."""
        return self.way == "text" and self.kind == "prompt"

    @property
    def is_whole_cell(self) -> bool:
        """Whether nothing can stand above it."""
        return self._way in ("magic", "text")

    @property
    def _way(self) -> str:
        is_possible = self.is_text if self.way == "text" else True
        if self.way == "line":
            is_possible = self.kind != "resource"
        return self.way if is_possible else "magic"

    @property
    def options(self) -> Options:
        """What it says about what it declares."""
        uri = None
        if self.kind == "resource":
            shape = SHAPES[self.shape]
            optional = shape.optional if shape.parameters else ()
            uri = Uri(self.served_name or self.name, shape.required, optional)
        return Options(self.served_name, self.run, self.kind, uri)

    def function(self, number: int) -> Function:
        """Return the function."""
        shape = SHAPES[self.shape]
        if self.is_text:
            shape = replace(shape, has_ticket=False)
            return Function(self.name, number, shape, False, False, self.described, is_text=True)
        function = Function(self.name, number, shape, self.is_coroutine, self.fails, self.described)
        return marked(function, self.options) if self.way == "decorator" else function

    def cell(self, function: Function) -> str:
        """Return the cell."""
        kind, uri = self.kind, self.options.uri
        first = "" if uri is None else uri.template
        words = first + (f" --run {self.run}" if self.run != "main" else "")
        keywords = (f"{first!r}, " if first else "") + f"run={self.run!r}"
        if self.served_name is not None:
            words += f" --name {self.served_name}"
            keywords += f", name={self.served_name!r}"
        signature = ", ".join(item.source for item in function.parameters)
        return {
            "magic": f"%%mcp_{kind} {words}\n{function.source}",
            "text": f"%%mcp_{kind} {self.name}({signature}) {words}\n{function.text}",
            "decorator": f"from mcp_notebook import mcp_{kind}\n"
            f"@mcp_{kind}({keywords})\n{function.source}",
            "line": f"{function.source}\n%mcp_{kind} {self.name} {words}",
            "plain": function.source,
        }[self._way]

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
    way=st.sampled_from(["magic", "decorator", "line", "plain", "text"]),
    kind=st.sampled_from(["tool", "tool", "prompt", "resource"]),
    served_name=st.none() | names,
    run=st.sampled_from(["main", "main", "thread"]),
)
kinds = st.sampled_from(["tool", "tool", "prompt", "resource"])
typed = st.tuples(st.sampled_from(["size", "size", "x", "none"]), st.sampled_from(["", "l", "sm"]))
picks = st.integers(0, 11)
"""Which one of those that there are."""
arguments_of_calls = st.none() | st.sampled_from(ARGUMENTS)
"""None: those that fit."""


@dataclass(eq=False)
class Pending:
    """A call that is not answered."""

    site: "Site"
    connection: Connection
    tool: Tool
    """What it calls."""
    arguments: Mapping[str, Any]
    future: "Future[Any]"
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
        self.joined = {connection: Joined(connection.allowed) for connection in self.connections}
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
    @rule(pick=picks, word=names, is_object=st.booleans())
    def declare_a_skill(self, pick, word, is_object):
        site = self.free[pick % len(self.free)]
        skill = Skill(word, self._number(), word.capitalize() if is_object else None)
        self._say(f"{site.label}: {skill.source!r}")
        site.kernel.ok(skill.source)
        site.notebook.declare_skill(skill)

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

    @property
    def declaring(self) -> list[Site]:
        """The free sites that declare something."""
        return [site for site in self.free if site.notebook.declared]

    @precondition(lambda self: self.declaring)
    @rule(pick=picks, name=picks)
    def remove(self, pick, name):
        site = self.declaring[pick % len(self.declaring)]
        names = list(site.notebook.declared)
        tool = names[name % len(names)]
        cell = f"from mcp_notebook import registry; registry.remove({tool!r})"
        self._say(f"{site.label}: {cell}")
        site.kernel.ok(cell)
        del site.notebook.declared[tool]

    @precondition(lambda self: self.declaring)
    @rule(pick=picks, name=picks, new=names)
    def rename(self, pick, name, new):
        site = self.declaring[pick % len(self.declaring)]
        declared = site.notebook.declared
        one = list(declared.values())[name % len(declared)]
        cell = f"from mcp_notebook import registry; registry.update({one.name!r}, name={new!r})"
        self._say(f"{site.label}: {cell}")
        if one.kind != "tool":
            assert f"'{one.name}' is a " in str(site.kernel.run(cell).error)
        elif new != one.name and new in declared:
            assert "cannot be renamed" in str(site.kernel.run(cell).error)
        else:
            site.kernel.ok(cell)
            site.notebook.rename(one.name, new)

    @precondition(lambda self: any(site.notebook.functions for site in self.free))
    @rule(pick=picks, name=picks, kind=st.sampled_from(["tool", "prompt"]))
    def offer_again(self, pick, name, kind):
        sites = [site for site in self.free if site.notebook.functions]
        site = sites[pick % len(sites)]
        functions = site.notebook.functions
        function = functions[name % len(functions)]
        self._say(f"{site.label}: %mcp_{kind} {function.name}")
        site.kernel.ok(f"%mcp_{kind} {function.name}")
        is_of_kind = function.mark is not None and function.mark.kind == kind
        site.notebook.offer(function, function.mark if is_of_kind else Options(kind=kind))
        site.notebook.follow()

    @precondition(lambda self: self.free)
    @rule(pick=picks)
    def reset(self, pick):
        site = self.free[pick % len(self.free)]
        self._say(f"{site.label}: %reset -f")
        site.kernel.ok("%reset -f")
        site.notebook.variables.clear()
        site.notebook.follow()

    @precondition(lambda self: any(site.notebook.callable for site in self.free))
    @rule(pick=picks, name=picks, arguments=arguments_of_calls)
    def call_in_a_cell(self, pick, name, arguments):
        sites = [site for site in self.free if site.notebook.callable]
        site = sites[pick % len(sites)]
        tool = site.notebook.callable[name % len(site.notebook.callable)]
        given = dict(tool.function.shape.fitting if arguments is None else arguments)
        if tool.kind != "tool":
            given = write_texts(given)
        code = f"get_ipython().run_line_magic('mcp', {f'call {tool.name} ' + _json(given)!r})"
        self._say(f"{site.label}: {code}")
        output = site.kernel.ok(code)
        expected = tool.answer(given)
        assert expected.text in output.stdout, (expected, output.stdout)
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
        for joined in self.joined.values():
            joined.come(site.notebook, site.label)

    def _go(self, site: Site) -> None:
        site.notebook.unload()
        for joined in self.joined.values():
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
            st.tuples(picks, kinds, picks, st.booleans(), arguments_of_calls),
            min_size=1,
            max_size=4,
        )
    )
    def call(self, calls):
        started = []
        for client, kind, target, full, arguments in calls:
            connection = self.connections[client % len(self.connections)]
            name, given = self._target(connection, kind, target, full, arguments)
            future = self._start(connection, kind, name, given)
            started.append((connection, kind, name, given, future))
        for connection, kind, name, given, future in started:
            found = self.joined[connection].find(name, kind)
            if isinstance(found, Outcome):
                self._answered(future, found)
                continue
            notebook, one = found
            site = self._site(notebook)
            if isinstance(one, Skill):
                self._answered(future, Outcome(one.document, "value"))
            elif site.main is not None and one.options.run == "main":
                site.queue.append(Pending(site, connection, one, given, future))
            else:
                self._answered(future, one.answer(given))

    def _start(self, connection: Connection, kind: Kind, name: str, given: dict[str, Any]):
        target = fill(name, given) if kind == "resource" else name
        self._say(f"{connection} requests the {kind} {target} with {given}")
        return connection.call(kind, target, given)

    @precondition(lambda self: self.room)
    @rule(client=picks, kind=kinds, wanted=picks, full=st.booleans())
    def call_and_wait(self, client, kind, wanted, full):
        connection = self.connections[client % len(self.connections)]
        name, given = self._target(connection, kind, wanted, full, None)
        found = self.joined[connection].find(name, kind)
        if isinstance(found, Outcome) or isinstance(found[1], Skill):
            return
        notebook, tool = found
        if kind == "resource" and "ticket" not in list_variables(name):
            return
        if not tool.function.shape.has_ticket:
            return
        site = self._site(notebook)
        given["ticket"] = f"call-{self._number()}"
        if not tool.waits(given):
            return
        queued = site.main is not None and tool.options.run == "main"
        if queued and any(call.ticket for call in site.queue):
            return  # which of the two comes first nobody could tell
        future = self._start(connection, kind, name, given)
        call = Pending(site, connection, tool, given, future)
        if queued:
            site.queue.append(call)
        else:
            on_loop = tool.options.run == "main" and not tool.holds_main
            self._began(call, holds_main=tool.holds_main, on_loop=on_loop)

    def _target(self, connection, kind, target, full, arguments):
        """Choose a name or a template, mostly one that is there, and arguments."""
        joined = self.joined[connection]
        there = list(joined.full_names(kind) if full else joined.names(kind))
        absent = [*NAMES, "sales_alpha", "sales.alpha"]
        if kind == "resource":
            shared = [one.template for _, one in joined.full_names(kind).values()]
            absent = [*(f"data://{name}" for name in NAMES), "data://stock/beta", *shared]
        choices = [*there, *there, *absent]
        name = choices[target % len(choices)]
        found = joined.find(name, kind)
        is_called = not isinstance(found, Outcome) and isinstance(found[1], Tool)
        fitting = found[1].function.shape.fitting if is_called else {}
        given = dict(fitting if arguments is None else arguments)
        if kind != "tool":
            given = write_texts(given)
        if kind == "resource":
            variables = list_variables(name)
            given = {each: text for each, text in given.items() if each in variables}
            given |= {
                each: _VALUES[each]
                for each, is_optional in variables.items()
                if not is_optional and not given.get(each)
            }
        return name, given

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
        kind, name = call.tool.kind, call.tool.name
        tool = self._declared(call)
        if tool is not None:
            return tool.answer(call.arguments)
        other = call.site.notebook.declared.get(name)
        if other is not None:
            return Outcome(f"{name!r} is a {other.kind}, not a {kind}", "error")
        return Outcome(f"Unknown {kind}: {name!r}", "error")

    def _declared(self, call: Pending) -> Tool | None:
        """Return what a call would run now."""
        tool = call.site.notebook.declared.get(call.tool.name)
        return tool if isinstance(tool, Tool) and tool.kind == call.tool.kind else None

    @precondition(lambda self: any(site.main is None for site in self.sites))
    @rule(pick=picks, then=st.none() | definitions)
    def keep_a_cell_running(self, pick, then):
        sites = self.free or [site for site in self.sites if site.main is None]
        site = sites[pick % len(sites)]
        if not site.notebook.loaded:
            then = None
        elif then is not None and then.is_whole_cell:
            then = None  # a cell of its own
        ticket = f"cell-{self._number()}"
        function = (then or Definition("f", 0, False, False, False, "")).function(self._number())
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
        self._say(f"{call.connection} cancels {call.tool.name} {call.ticket}")
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
            tool = self._declared(call)
            if tool and tool.waits(call.arguments) and not tool.function.is_coroutine:
                site.queue.remove(call)  # those before and behind it cannot be told apart
                self._began(call, holds_main=True, on_loop=False)
                return
        queue, site.queue = site.queue, []
        for call in queue:
            tool = self._declared(call)
            if tool and tool.waits(call.arguments):
                self._began(call, holds_main=False, on_loop=True)
            else:
                self._answered(call.future, self._outcome(call))

    # -- completions and subscriptions -------------------------------------------------------------

    @rule(client=picks, kind=st.sampled_from(["prompt", "resource"]), wanted=picks, typed=typed)
    def complete(self, client, kind, wanted, typed):
        connection = self.connections[client % len(self.connections)]
        joined = self.joined[connection]
        choices = [*joined.names(kind), *NAMES]
        name = choices[wanted % len(choices)]
        argument, text = typed
        self._say(f"{connection} completes {argument}={text!r} of the {kind} {name}")
        reference = (
            PromptReference(name=name) if kind == "prompt" else ResourceTemplateReference(uri=name)
        )
        future = connection.complete(reference, argument, text)
        found = joined.find(name, kind)
        if kind == "resource" and name not in joined.names(kind):
            found = Outcome("Unknown resource", "error")
        if isinstance(found, Outcome):
            self._answered(future, found)
            return
        shape = found[1].function.shape if isinstance(found[1], Tool) else SHAPES[0]
        values = [v for item in shape.parameters if item.name == argument for v in item.completions]
        expected = [v for v in values if v.startswith(text)]
        expected += [v for v in values if text in v and not v.startswith(text)]
        assert future.result(LIMIT).completion.values == expected

    @rule(client=picks, wanted=picks)
    def subscribe(self, client, wanted):
        connection = self.connections[client % len(self.connections)]
        templates = list(self.joined[connection].names("resource")) or ["data://nothing"]
        uri = fill(templates[wanted % len(templates)], _VALUES)
        if uri in connection.subscriptions:
            self._say(f"{connection} unsubscribes from {uri}")
            connection.unsubscribe(uri)
        else:
            self._say(f"{connection} subscribes to {uri}")
            connection.subscribe(uri)

    @precondition(lambda self: any(site.notebook.of_kind("resource") for site in self.free))
    @rule(pick=picks, name=picks)
    def change_a_resource(self, pick, name):
        sites = [site for site in self.free if site.notebook.of_kind("resource")]
        site = sites[pick % len(sites)]
        resources = list(site.notebook.of_kind("resource").values())
        one = resources[name % len(resources)]
        uri = fill(one.template, _VALUES)
        waiting = [
            (connection, fill(served, _VALUES))
            for connection in self.connections
            for served, found in self.joined[connection].names("resource").items()
            if found == (site.notebook, one) and fill(served, _VALUES) in connection.subscriptions
        ]
        for connection, served in waiting:
            connection.viewer.updated.discard(served)
        cell = f"from mcp_notebook import resource_changed; resource_changed({uri!r})"
        self._say(f"{site.label}: {cell}; {len(waiting)} are told")
        site.kernel.ok(cell)
        for connection, served in waiting:
            told = self.system.portal.call(connection.viewer.until_told, served)
            assert told, f"{connection} was not told that {served} has changed"

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
            joined = self.joined[connection] = Joined(connection.allowed)
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
        problems = self.system.shows(expected)
        assert not problems, f"{problems}\nexpected: {expected}"

    def _answered(self, future: "Future[Any]", *expected: Outcome) -> None:
        try:
            result = future.result(LIMIT)
        except MCPError as error:
            code, got = error.error.code, Outcome(error.error.message, "error")
        else:
            code = None
            got = _read_result(result)
        assert code in (None, INVALID_PARAMS, INTERNAL_ERROR, LEGACY_NOT_FOUND), got
        assert any(
            (
                got.kind == each.kind
                and (got.text == each.text if each.kind == "value" else each.text in got.text)
            )
            # For minutes the bridge remembers names, also those of the sequences before.
            or (
                each.text.startswith(("Unknown", "No "))
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


def _read_result(result: Any) -> Outcome:
    """Return the answer to a call of any kind."""
    if isinstance(result, GetPromptResult):
        (message,) = result.messages
        return Outcome(message.content.text, "value")
    if isinstance(result, ReadResourceResult):
        (content,) = result.contents
        return Outcome(content.text, "value")
    return Outcome(text_of(result), "error" if result.is_error else "value")


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
