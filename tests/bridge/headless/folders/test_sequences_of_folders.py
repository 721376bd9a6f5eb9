"""Whatever happens to the notebooks of a folder in whatever order, clients see what a model says.

hypothesis makes up sequences of what users, clients and time do to a folder: notebooks are written,
called, run, deleted, also while their cells run; kernels are not used for a while, or killed; the
bridge is restarted. Each step is done with real kernels and in the model, and then both are
compared. `tests/e2e/test_sequences.py` does the same with live notebooks.
"""

import itertools
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio
import psutil
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from served_folder import LOAD, ServedFolder, served_folder, write

from mcp_notebook.bridge.headless.folders import folder as folder_module
from mcp_notebook.errors import NotStarted, ToolGone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]
SEQUENCES, STEPS = 6, 15
picks = st.integers(0, 11)
"""Which one of those that there are."""
NAMES = ("sales", "sub/costs")
FIRST = """import pathlib, time
while pathlib.Path({hold!r}).exists():
    time.sleep(0.01)
assert {works}, "the database is down"
"""
TOOL = """%%mcp_tool
def {name}() -> str:
    "Returns its name."
    return {name!r}
"""


@dataclass(frozen=True)
class Version:
    """The code of a file."""

    tool: str
    works: bool
    """Whether its cells run without an error."""


class Notebook:
    """A file, and what the model says about it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.file: Version | None = None
        self.ran: Version | None = None
        """What ran last; the bridge remembers that, even if the file is deleted."""
        self.is_awake = False

    @property
    def tools(self) -> list[str]:
        """The tools that are listed."""
        return [self.ran.tool] if self.file and self.ran else []

    @property
    def has_to_run(self) -> bool:
        """Whether it is listed as one that has to run before its tools are known."""
        return self.file is not None and self.file != self.ran and not self.is_awake

    def run(self) -> None:
        """Its cells run."""
        if not self.is_awake and self.file and self.file.works:
            self.ran, self.is_awake = self.file, True


class Sequences(RuleBasedStateMachine):
    """One sequence."""

    portal: ClassVar[BlockingPortal]
    root: ClassVar[Path]
    numbers: ClassVar["itertools.count[int]"]

    def __init__(self) -> None:
        super().__init__()
        self.home = self.root / str(next(self.numbers))
        self.folder = self.home / "nb"
        self.folder.mkdir(parents=True)
        self.hold = self.home / "hold"
        """The cells of all notebooks wait while this file exists."""
        self.notebooks = [
            Notebook(self.folder / f"{name}.ipynb", name.replace("/", "--")) for name in NAMES
        ]
        self.log: list[str] = []
        self.stack = ExitStack()
        self.here: ServedFolder
        self._open()

    def _open(self) -> None:
        served = served_folder(self.folder, self.home)
        self.here = self.stack.enter_context(self.portal.wrap_async_context_manager(served))

    def teardown(self) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, Exception):
            error.add_note("\n".join(["The sequence:", *self.log]))
        self.hold.unlink(missing_ok=True)
        self.stack.close()

    def _say(self, notebook: Notebook | None, what: str) -> None:
        self.log.append(f"{notebook.name}: {what}" if notebook else what)

    def _choose(self, pick: int, condition: str) -> Notebook:
        """Return one of the notebooks of which something is true."""
        fitting = [each for each in self.notebooks if getattr(each, condition)]
        return fitting[pick % len(fitting)]

    def _has(self, condition: str) -> bool:
        return any(getattr(each, condition) for each in self.notebooks)

    # -- the files ---------------------------------------------------------------------------------

    @rule(pick=picks, works=st.sampled_from([True, True, True, False]))
    def write(self, pick, works):
        notebook = self.notebooks[pick % len(self.notebooks)]
        version = Version(f"tool{next(self.numbers)}", works)
        self._say(notebook, f"is saved: {version}")
        cells = [FIRST.format(hold=str(self.hold), works=works), TOOL.format(name=version.tool)]
        write(notebook.path, LOAD, *cells)
        notebook.file, notebook.is_awake = version, False

    @precondition(lambda self: self._has("file"))
    @rule(pick=picks)
    def delete(self, pick):
        self._delete(self._choose(pick, "file"))

    def _delete(self, notebook: Notebook) -> None:
        self._say(notebook, "is deleted")
        notebook.path.unlink()
        notebook.file, notebook.is_awake = None, False

    # -- clients -----------------------------------------------------------------------------------

    @precondition(lambda self: self._has("tools"))
    @rule(pick=picks)
    def call(self, pick):
        notebook = self._choose(pick, "tools")
        (tool,) = notebook.tools
        self._say(notebook, f"{tool} is called")
        notebook.run()
        if not notebook.is_awake:
            with pytest.raises(NotStarted, match="the database is down"):
                self.portal.call(self.here.call, tool)
        elif notebook.tools == [tool]:
            assert self.portal.call(self.here.call, tool) == tool
        else:
            with pytest.raises(ToolGone):
                self.portal.call(self.here.call, tool)

    @precondition(lambda self: self._has("has_to_run"))
    @rule(pick=picks)
    def run(self, pick):
        notebook = self._choose(pick, "has_to_run")
        self._say(notebook, "is run")
        notebook.run()
        if notebook.is_awake:
            self.portal.call(self._run, notebook)
        else:
            with pytest.raises(NotStarted, match="the database is down"):
                self.portal.call(self._run, notebook)

    async def _run(self, notebook: Notebook) -> None:
        entry = self.here.catalog.find(notebook.name, "notebook")
        await self.here.links.wait_for_kernel(entry, errors="full")

    @precondition(lambda self: self._has("has_to_run"))
    @rule(pick=picks)
    def delete_while_it_starts(self, pick):
        notebook = self._choose(pick, "has_to_run")
        self._say(notebook, "is run...")
        self.hold.touch()
        self.portal.call(self._run_and_delete, notebook)
        self.hold.unlink()

    async def _run_and_delete(self, notebook: Notebook) -> None:
        answers: list[str] = []

        async def run() -> None:
            with pytest.raises(NotStarted) as caught:
                await self._run(notebook)
            answers.append(caught.value.details)

        kernels = len(psutil.Process().children())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            # Code that has just failed is not run again.
            await self.here.until(lambda: answers or len(psutil.Process().children()) > kernels)
            said = "the database is down" if answers else "Its file was moved or deleted"
            self._delete(notebook)
        assert said in answers[0]

    # -- time --------------------------------------------------------------------------------------

    @precondition(lambda self: self._has("is_awake"))
    @rule(pick=picks)
    def is_not_used_for_an_hour(self, pick):
        notebook = self._choose(pick, "is_awake")
        self._say(notebook, "is not used for an hour")
        self.portal.call(self._find_link(notebook).__setattr__, "last_use", -3600.0)
        notebook.is_awake = False

    @precondition(lambda self: self._has("is_awake"))
    @rule(pick=picks)
    def is_killed(self, pick):
        notebook = self._choose(pick, "is_awake")
        self._say(notebook, "its kernel is killed")
        os.kill(self._find_link(notebook).record.pid, signal.SIGKILL)
        notebook.is_awake = False

    def _find_link(self, notebook: Notebook):
        links = self.here.links.open_links
        return next(link for link in links if link.record.name == notebook.name)

    @precondition(lambda self: self._has("ran"))
    @rule()
    def the_bridge_is_restarted(self):
        self._say(None, "the bridge is restarted")
        self.stack.close()
        self._open()
        for notebook in self.notebooks:
            notebook.is_awake = False

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_model_says(self):
        tools = sorted(tool for each in self.notebooks for tool in each.tools)
        to_run = sorted(each.name for each in self.notebooks if each.has_to_run)
        awake = sum(each.is_awake for each in self.notebooks)
        wanted = (tools, to_run, awake, awake)

        def look():
            here = self.here
            names = sorted(here.list_names()), sorted(here.list_names("notebook"))
            return *names, len(here.links), len(psutil.Process().children())

        try:
            self.portal.call(self.here.until, lambda: look() == wanted)
        except TimeoutError:
            pytest.fail(f"It is {look()}, not {wanted}.")


def test_whatever_is_done_in_whatever_order_is_as_the_model_says(folder, monkeypatch):
    monkeypatch.setattr(folder_module, "LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(folder_module, "_SHARE", 0)

    class Run(Sequences):
        root, numbers = folder, itertools.count(1)

    with start_blocking_portal() as Run.portal:
        run_state_machine_as_test(
            Run,
            settings=settings(
                max_examples=SEQUENCES,
                stateful_step_count=STEPS,
                deadline=None,
                phases=[Phase.reuse, Phase.generate],  # not shrunk: each try takes seconds
                suppress_health_check=list(HealthCheck),
            ),
        )
