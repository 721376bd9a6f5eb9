"""A call that runs a notebook of a folder passes the gates of a call and is in the audit log."""

import os
from contextlib import asynccontextmanager

import anyio
import psutil
import pytest
from clients import text_of
from judge import in_process
from linked_servers import Notes, make_server
from live import TIMEOUT
from mcp import Client
from mcp_types import ElicitResult
from notebook_files import write_notebook
from served_folder import LOAD, PID, served_folder

from mcp_notebook.bridge.server.consent.ask_consent import ALLOW, ALLOW_HOUR, ALLOW_SESSION, DENY
from mcp_notebook.bridge.server.consent.policy import ConsentPolicy
from mcp_notebook.bridge.telemetry.call_events import CallEnd, CallRefusal, CallStart
from mcp_notebook.settings.limits import Limits

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("forked_kernels"),
    pytest.mark.skipif(os.name == "nt", reason="kernels are ended by signals"),
]
WAIT = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)"
ASKS = {"consent": ConsentPolicy(confirm_destructive=True)}


@asynccontextmanager
async def _served(folder, home, era, user=None, look_interval=0.02, **options):
    """Yield a client of a server of this folder, the server, and the folder as it is served."""
    async with served_folder(folder, home, look_interval=look_interval) as here:
        server = make_server(here.catalog, here.links, runs_notebooks=True, **options)
        async with Client(in_process(server), mode=era, elicitation_callback=user) as client:
            with anyio.fail_after(TIMEOUT):
                yield client, server, here


async def _run(client, name="sums"):
    return text_of(await client.call_tool("run_notebook", {"name": name}))


@pytest.mark.slow
async def test_a_run_has_a_start_and_one_end(folder, home, era):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    write_notebook(folder / "fails.ipynb", LOAD, PID, "1 / 0")
    notes = Notes()
    async with _served(folder, home, era, audit=notes) as (client, _, _):
        assert "sums has run, and 2 tools" in await _run(client)
        assert "ZeroDivisionError" in await _run(client, "fails")
        assert "sums has run, and 2 tools" in await _run(client)  # it runs: nothing is called
    first, first_end, second, second_end = notes
    assert isinstance(first, CallStart)
    assert (first.tool, first.notebook, first.tool_kind) == ("run_notebook", "sums", "tool")
    assert (first.arguments, first.caller) == ({"name": "sums"}, "owner")
    assert isinstance(first_end, CallEnd)
    assert (first_end.start, first_end.outcome, first_end.error) == (first, "ok", None)
    assert 0 < first_end.seconds < TIMEOUT
    assert first_end.size > 100
    assert second.notebook == "fails"
    assert (second_end.start, second_end.outcome) == (second, "error")
    assert "ZeroDivisionError" in second_end.error


@pytest.mark.slow
async def test_a_run_counts_as_a_running_call_and_its_client_may_cancel_it(folder, home, era):
    write_notebook(folder / "sums.ipynb", LOAD, WAIT, PID)
    write_notebook(folder / "other.ipynb", LOAD, PID)
    notes, limits = Notes(), Limits(max_caller_calls=1)
    async with (
        _served(folder, home, era, audit=notes, limits=limits) as (client, _, here),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_run, client)
        await here.until(lambda: notes)
        assert "running calls" in await _run(client, "other")
        assert isinstance(notes[1], CallRefusal)
        assert (notes[1].tool, notes[1].notebook) == ("run_notebook", "other")
        tasks.cancel_scope.cancel()
    start, _, end = notes
    assert (end.start, end.outcome) == (start, "cancelled")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["deleted", "stopped"])
async def test_a_run_that_does_not_end_is_no_success(folder, home, era, what):
    begin = "import pathlib\npathlib.Path('began').touch()"
    path = write_notebook(folder / "sums.ipynb", LOAD, begin, WAIT, PID)
    notes, said = Notes(), []
    async with (
        _served(folder, home, era, audit=notes) as (client, server, here),
        anyio.create_task_group() as tasks,
    ):

        async def run():
            said.append(await client.call_tool("run_notebook", {"name": "sums"}))

        tasks.start_soon(run)
        await here.until((folder / "began").exists)
        if what == "deleted":
            path.unlink()
        else:
            server.close()
    (result,) = said
    assert result.is_error
    start = "The notebook 'sums' has not run to its end, and nothing was called. Its file was moved"
    assert text_of(result).startswith(start if what == "deleted" else "The bridge was stopped")
    assert notes[-1].outcome == "error"


@pytest.mark.parametrize("through", [None, "call_notebook_tool"])
async def test_nothing_runs_unasked_where_a_person_decides(folder, home, era, through):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    asked, answers, notes = [], [ALLOW, DENY], Notes()

    async def answer(_context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": answers.pop()})

    async def run(client):
        if through is None:
            return await _run(client)
        arguments = {"name": "run_notebook", "arguments": {"name": "sums"}}
        return text_of(await client.call_tool(through, arguments))

    options = ASKS | {"meta_tools": "only", "audit": notes}
    async with _served(folder, home, era, answer, **options) as (client, _, _):
        said = await run(client)
        assert said.startswith("The tool 'run_notebook' runs only with a person's consent, so this")
        assert psutil.Process().children() == []
        assert "sums has run, and 2 tools" in await run(client)
    lines = asked[1].splitlines()
    assert lines[2:6] == ["Tool: run_notebook", "Notebook: sums", "Arguments:", '    name = "sums"']
    assert [type(note) for note in notes] == [CallRefusal, CallStart, CallEnd]


@pytest.mark.slow
async def test_a_grant_is_for_one_notebook_and_its_code(folder, home, era):
    for name in ("sums", "other"):
        write_notebook(folder / f"{name}.ipynb", LOAD, PID)
    asked = []

    async def answer(_context, params):
        asked.append(params.message)
        allow = ALLOW_SESSION if era == "legacy" else ALLOW_HOUR
        return ElicitResult(action="accept", content={"answer": allow})

    async with _served(folder, home, era, answer, **ASKS) as (client, _, here):
        await _run(client)
        for number, code in enumerate(["1 + 1", "2 + 2"], start=2):
            write_notebook(folder / "sums.ipynb", LOAD, PID, code)
            await here.until(lambda: "sums" in here.list_names("notebook"))
            await _run(client)
            assert len(asked) == number
        await _run(client, "other")
    assert len(asked) == 4


async def test_code_that_is_saved_while_a_person_is_asked_does_not_run(folder, home, era):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    asked = []

    async def answer(_context, params):
        asked.append(params.message)
        if len(asked) == 1:
            write_notebook(folder / "sums.ipynb", LOAD, PID, "open('ran', 'w').close()")
        return ElicitResult(action="accept", content={"answer": ALLOW_HOUR})

    # Nobody has seen that it was saved.
    async with _served(folder, home, era, answer, 60, **ASKS) as (client, _, _):
        said = await _run(client)
        assert said.endswith("its file was changed after a person was asked. Call again.")
        assert not (folder / "ran").exists()
        assert "sums has run" in await _run(client)
    assert len(asked) == 2
    assert (folder / "ran").exists()


async def test_where_nobody_can_be_asked_nothing_runs(folder, home, era):
    write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with _served(folder, home, era, **ASKS) as (client, _, _):
        said = await _run(client)
    assert "so it shows no forms, and the notebook 'sums' does not run" in said


async def test_a_notebook_that_is_deleted_while_a_person_is_asked_does_not_run(folder, home, era):
    path = write_notebook(folder / "sums.ipynb", LOAD, PID)
    async with served_folder(folder, home) as here:

        async def answer(_context, _params):
            path.unlink()
            await here.until(lambda: not here.list_names("notebook"))
            return ElicitResult(action="accept", content={"answer": ALLOW})

        server = make_server(here.catalog, here.links, runs_notebooks=True, **ASKS)
        async with Client(in_process(server), mode=era, elicitation_callback=answer) as client:
            said = await _run(client)
    if era == "legacy":
        assert "The tool was changed while a person was asked." in said
    else:  # the client asks its user between two requests
        assert said.startswith("The notebook 'sums' is gone. Its file was moved or deleted")
