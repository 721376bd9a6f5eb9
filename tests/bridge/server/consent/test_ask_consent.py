"""A person is asked before a call, by clients of both eras, about tools of a live kernel."""

import gc
import json
import re
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import pytest
from clients import text_of
from contents import only_text
from judge import in_process
from linked_servers import Notes, linked_server
from live import Link, kernel_with, record_of
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_notebook.bridge.access.caller import OWNER, Caller
from mcp_notebook.bridge.server.consent import ask_consent
from mcp_notebook.bridge.server.consent.ask_consent import (
    ALLOW,
    ALLOW_HOUR,
    ALLOW_SESSION,
    DENY,
    KEY,
)
from mcp_notebook.bridge.server.consent.policy import ConsentPolicy
from mcp_notebook.bridge.server.requests import expand
from mcp_notebook.bridge.server.sessions.client_profile import read_profile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.bridge.server.sessions.client_sessions import ClientSession
from mcp_notebook.bridge.telemetry.call_events import CallRefusal, CallStart
from mcp_notebook.protocol.messages import Request
from mcp_notebook.text.missing_tools import META_TOOLS
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio

DROP = """%%mcp_tool --confirm
def drop(year: int, key: Annotated[str, Field(json_schema_extra={"writeOnly": True})] = "") -> str:
    "Drop a year."
    runs.append(year)
    return f"dropped {year}"
"""
CELLS = [
    "from typing import Annotated\nfrom pydantic import Field\nruns = []",
    DROP,
    '%%mcp_tool --confirm --read-only\ndef peek() -> str:\n    "Peek."\n    return "ok"',
    '%%mcp_tool --read-only\ndef look() -> str:\n    "Look."\n    return "seen"',
    '%%mcp_tool\ndef overwrite() -> str:\n    "Overwrite."\n    return "gone"',
    '%%mcp_tool --non-destructive\ndef add() -> str:\n    "Add."\n    return "more"',
]


class User:
    """Answers questions about consent, always in the same way."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def __call__(self, _context, params):
        self.asked.append(params)
        answer = await self.answer() if callable(self.answer) else self.answer
        if isinstance(answer, types.ErrorData):
            return answer
        if answer in ("decline", "cancel"):
            return types.ElicitResult(action=answer)
        return types.ElicitResult(action="accept", content=answer)


class Asked:
    """The way to a client that can be asked, and is not."""

    can_ask = True
    was_asked = False

    async def ask(self, _form):
        self.was_asked = True


kernel = kernel_with(*CELLS)


@asynccontextmanager
async def connected(kernel, era, user=None, **options):
    """Yield a client of a server that is linked to this kernel."""
    async with (
        linked_server(kernel, **options) as (server, _),
        Client(in_process(server), mode=era, elicitation_callback=user) as client,
    ):
        yield client


async def has_run(kernel, *years):
    """Tell whether the tool has run for exactly these years, and forget them."""
    code = f"was, runs[:] = [*runs], []\nassert was == {list(years)}, was"
    return (await anyio.to_thread.run_sync(kernel.run, code)).error is None


@pytest.mark.smoke
async def test_a_tool_runs_when_its_user_has_agreed(kernel, era):
    user, notes = User({"answer": ALLOW}), Notes()
    async with connected(kernel, era, user, audit=notes) as client:
        for year in (1, 2):
            result = await client.call_tool("drop", {"year": year, "key": "hunter2"})
            assert text_of(result) == f"dropped {year}"
    assert await has_run(kernel, 1, 2)
    first, _ = user.asked
    lines = first.message.splitlines()
    assert "Tool: drop" in lines
    assert "    year = 1" in lines
    assert "hunter2" not in first.message
    assert lines[-1].startswith('Asked by: owner, with the program "mcp ')
    field = first.requested_schema["properties"]["answer"]
    # VS Code shows these two alone, and selects the default or else the first answer.
    assert field["title"] == "Allow drop?"
    assert field["description"].startswith("Arguments: year = 1, key = ")
    assert "hunter2" not in field["description"]
    assert field["enum"] == [DENY, ALLOW, ALLOW_SESSION if era == "legacy" else ALLOW_HOUR]
    assert "default" not in field
    assert sum(isinstance(note, CallStart) for note in notes) == 2
    assert not any(isinstance(note, CallRefusal) for note in notes)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_call_whose_question_cannot_be_written_is_refused_and_written_down(kernel, version):
    """No transport lets such a number through: it stands for whatever goes wrong."""
    user, notes = Asked(), Notes()
    profile = read_profile(version, None, {"elicitation": {}}, ClientSession(None))
    request = ClientRequest(
        profile=profile, id=1, caller=OWNER, meta={}, is_stdio=True, channel=user
    )
    params = {"name": "drop", "arguments": {"year": 10**5000}}
    async with linked_server(kernel, audit=notes) as (server, _):
        answer = await server.requests.answer(Request(1, "tools/call", params), request)
    assert json.loads(b"".join(expand(answer.pieces)))["result"]["isError"]
    assert not user.was_asked
    assert await has_run(kernel)
    (refusal,) = notes
    assert refusal.reason.endswith("internal error in mcp-notebook: ValueError.")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"answer": DENY}, "did not allow it"),
        ("decline", "did not allow it"),
        ("cancel", "closed the question"),
        ({"answer": "yes, of course"}, "did not allow it"),
        ({"answer": ["Allow once"]}, "did not allow it"),
        ({}, "did not allow it"),
    ],
    ids=str,
)
async def test_any_other_answer_is_a_no(kernel, era, answer, said):
    notes = Notes()
    async with connected(kernel, era, User(answer), audit=notes) as client:
        result = await client.call_tool("drop", {"year": 3})
    assert result.is_error
    assert said in text_of(result)
    assert await has_run(kernel)
    (refusal,) = notes
    assert (refusal.tool, refusal.reason) == ("drop", text_of(result))
    record = record_of(kernel)
    assert (refusal.kernel, refusal.notebook) == (record.id, record.name)


async def test_a_client_that_fails_to_ask_is_a_no(kernel):
    user = User(types.ErrorData(code=-1, message="no dialog here"))
    async with connected(kernel, "legacy", user) as client:
        result = await client.call_tool("drop", {"year": 3})
    assert result.is_error
    assert "The client could not ask its user: no dialog here" in text_of(result)
    assert await has_run(kernel)


async def test_for_this_session_is_asked_once_for_each_tool_and_client(kernel, era):
    user = User({"answer": ALLOW_SESSION if era == "legacy" else ALLOW_HOUR})
    async with linked_server(kernel, consent=ConsentPolicy(confirm_destructive=True)) as (
        server,
        _,
    ):
        async with Client(in_process(server), mode=era, elicitation_callback=user) as client:
            for year in (4, 5):
                assert not (await client.call_tool("drop", {"year": year})).is_error
            assert len(user.asked) == 1
            await client.call_tool("overwrite", {})
            assert len(user.asked) == 2
        info = types.Implementation(name="another program", version="1")
        async with Client(
            in_process(server), mode=era, elicitation_callback=user, client_info=info
        ) as other:
            await other.call_tool("drop", {"year": 6})
    assert len(user.asked) == 3
    assert await has_run(kernel, 4, 5, 6)


async def test_a_changed_tool_is_asked_about_again(kernel, era):
    user = User({"answer": ALLOW_SESSION if era == "legacy" else ALLOW_HOUR})
    async with connected(kernel, era, user) as client:
        await client.call_tool("drop", {"year": 7})
        await anyio.to_thread.run_sync(kernel.ok, DROP)
        while len(user.asked) == 1:  # until the bridge has heard of it
            await client.call_tool("drop", {"year": 7})
    output = await anyio.to_thread.run_sync(kernel.run, "assert set(runs) == {7}\nruns.clear()")
    assert output.error is None


async def test_a_tool_that_is_changed_while_its_user_is_asked_does_not_run_unasked(kernel, era):
    """At 2026-07-28 the question is put again; before, the call is refused."""

    async def redefine():
        if len(user.asked) == 1:
            await anyio.to_thread.run_sync(kernel.ok, DROP)
        return {"answer": ALLOW}

    user = User(redefine)
    async with connected(kernel, era, user) as client:
        result = await client.call_tool("drop", {"year": 8})
    if result.is_error:
        assert "was changed" in text_of(result)
        assert await has_run(kernel)
    else:
        assert era == "auto"
        assert len(user.asked) == 2
        assert await has_run(kernel, 8)


async def test_consent_is_void_if_the_tool_has_changed_since_the_question(kernel, era):
    """At 2026-07-28 the question is put again; before, the call is refused."""

    async def redefine():
        if len(user.asked) == 1:
            code = '%%mcp_tool\ndef overwrite() -> str:\n    "Overwrite all."\n    return "gone"'
            await anyio.to_thread.run_sync(kernel.ok, code)
            while server.tools.find(OWNER, "overwrite").tool.description != "Overwrite all.":
                await anyio.lowlevel.checkpoint()
        return {"answer": ALLOW}

    user = User(redefine)
    await anyio.to_thread.run_sync(kernel.ok, CELLS[-2])
    policy = ConsentPolicy(confirm_destructive=True)
    async with (
        linked_server(kernel, consent=policy) as (server, _),
        Client(in_process(server), mode=era, elicitation_callback=user) as client,
    ):
        result = await client.call_tool("overwrite", {})
    if era == "legacy":
        assert "The tool was changed while a person was asked" in text_of(result)
    else:
        assert text_of(result) == "gone"
    assert len(user.asked) == (1 if era == "legacy" else 2)


async def test_destructive_tools_ask_where_the_policy_says_so(kernel, era):
    user = User("decline")
    policy = ConsentPolicy(confirm_destructive=True)
    async with connected(kernel, era, user, consent=policy) as client:
        for tool in ("look", "add"):
            assert not (await client.call_tool(tool, {})).is_error
        assert user.asked == []
        assert (await client.call_tool("overwrite", {})).is_error
        assert len(user.asked) == 1
    async with connected(kernel, era, user) as client:
        assert not (await client.call_tool("overwrite", {})).is_error


async def test_a_call_through_a_meta_tool_is_asked_about_like_any_other(kernel, era):
    user = User({"answer": ALLOW})
    request = {"name": "drop", "arguments": {"year": 9}}
    async with connected(kernel, era, user, meta_tools=True) as client:
        assert text_of(await client.call_tool(META_TOOLS[2], request)) == "dropped 9"
        assert "Tool: drop\n" in user.asked[0].message
        assert "    year = 9\n" in user.asked[0].message
        user.answer = "decline"
        assert (await client.call_tool(META_TOOLS[2], request)).is_error
    assert await has_run(kernel, 9)


@pytest.mark.slow
async def test_no_answer_in_time_is_a_no_and_the_kernel_is_free_meanwhile(kernel):
    async def never():
        other = await client.call_tool("look", {})
        assert text_of(other) == "seen"
        kernel_output = await anyio.to_thread.run_sync(kernel.run, "print('free')")
        assert "free" in kernel_output.stdout
        closed.append("shown")
        try:
            await anyio.sleep_forever()
        finally:
            closed.append("closed")

    closed, notes = [], Notes()
    policy = ConsentPolicy(timeout=5)
    async with connected(kernel, "legacy", User(never), consent=policy, audit=notes) as (client):
        result = await client.call_tool("drop", {"year": 10})
        while closed != ["shown", "closed"]:  # the client is told to close its dialog
            await anyio.lowlevel.checkpoint()
    assert result.is_error
    assert "Nobody answered the question within 5.0 s." in text_of(result)
    assert isinstance(notes[-1], CallRefusal)
    assert await has_run(kernel)


async def test_a_cancelled_call_takes_its_question_back(kernel):
    asked, gone = anyio.Event(), anyio.Event()

    async def never():
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            gone.set()

    notes = Notes()
    async with connected(kernel, "legacy", User(never), audit=notes) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "drop", {"year": 11})
            await asked.wait()
            tasks.cancel_scope.cancel()
        await gone.wait()
        while not notes:
            await anyio.lowlevel.checkpoint()
    (refusal,) = notes
    assert refusal.reason == "The call was cancelled before it was started."
    assert await has_run(kernel)


async def test_a_bridge_that_stops_answers_the_calls_that_wait_for_consent(kernel):
    async def never():
        server.close()
        await anyio.sleep_forever()

    async with (
        linked_server(kernel) as (server, _),
        Client(in_process(server), mode="legacy", elicitation_callback=User(never)) as client,
    ):
        result = await client.call_tool("drop", {"year": 12})
    assert result.is_error
    assert "The bridge was stopped before anybody answered" in text_of(result)
    assert await has_run(kernel)


@pytest.mark.parametrize(
    ("limit", "whose"),
    [("max_open", "all callers together can"), ("max_caller_open", "one caller can")],
)
async def test_open_questions_are_limited(kernel, limit, whose):
    seen = []

    async def ask_on():
        seen.append(await client.call_tool("drop", {"year": 14}))
        return {"answer": ALLOW}

    policy = ConsentPolicy(**{limit: 1})
    async with connected(kernel, "legacy", User(ask_on), consent=policy) as client:
        result = await client.call_tool("drop", {"year": 13})
    assert text_of(result) == "dropped 13"
    assert f"Too many open questions: {whose} have 1 at a time." in text_of(seen[0])
    assert await has_run(kernel, 13)


async def test_a_client_is_told_again_and_again_that_its_call_waits(kernel):
    """Some clients give a call up after a minute in which they hear nothing."""
    told, has_heard = [], anyio.Event()

    async def hear(_done, _total, message):
        told.append(message)
        if len(told) > 2:
            has_heard.set()

    async def agree():
        await has_heard.wait()
        return {"answer": ALLOW}

    policy = ConsentPolicy(tell_every=0.01)
    async with connected(kernel, "legacy", User(agree), consent=policy) as client:
        result = await client.call_tool("drop", {"year": 15}, progress_callback=hear)
    assert text_of(result) == "dropped 15"
    asked = "a person is being asked whether the call may run; time to answer: "
    assert all(text.startswith(asked) for text in told[:3])
    assert await has_run(kernel, 15)


async def test_a_kernel_refuses_an_unconfirmed_call(kernel):
    """As a bridge sends it that is older than the kernel, or late."""

    def call(tool, confirmed, **arguments):
        with Link(record_of(kernel)) as link:
            (info,) = (info for info in link.welcome.tools if info.name == tool)
            confirmed = info.revision if confirmed == "this revision" else confirmed
            link.send(messages.Call(id=1, tool=tool, arguments=arguments, confirmed=confirmed))
            return link.result()

    def check():
        for tool, arguments in (("drop", {"year": 16}), ("peek", {})):
            assert not call(tool, "this revision", **arguments).is_error
            unasked = call(tool, None, **arguments)
            outdated = call(tool, "another revision", **arguments)
            assert unasked.is_error
            assert "nobody was asked" in only_text(unasked)
            assert outdated.is_error
            assert "was changed" in only_text(outdated)

    await anyio.to_thread.run_sync(check)
    assert await has_run(kernel, 16)


# -- the answers that clients of 2026-07-28 come back with -----------------------------------------


class Raw:
    """Calls as a client does that handles questions itself."""

    def __init__(self, client):
        self.client = client

    async def call(self, arguments, state=None, answer=ALLOW, tool="drop"):
        responses = types.ElicitResult(action="accept", content={"answer": answer})
        return await self.client.session.call_tool(
            tool,
            arguments,
            input_responses=None if answer is None else {KEY: responses},
            request_state=state,
            allow_input_required=True,
        )

    async def refusal(self, *arguments, **options):
        with pytest.raises(MCPError, match="requestState") as caught:
            await self.call(*arguments, **options)
        assert caught.value.code == types.INVALID_PARAMS


async def test_a_state_is_for_one_call_and_works_once(kernel):
    user, notes = User("cancel"), Notes()
    async with connected(kernel, "auto", user, audit=notes) as client:
        raw = Raw(client)
        # An answer without a question is none.
        first = await raw.call({"year": 20})
        assert isinstance(first, types.InputRequiredResult)
        state = first.request_state
        await raw.refusal({"year": 21}, state)
        await raw.refusal({"year": 20, "key": ""}, state)
        await raw.refusal({"year": 20}, f"{state}x")
        await raw.refusal({"year": 20}, f"{state[:-1]}{'A' if state[-1] != 'A' else 'B'}")
        await raw.refusal({"year": 20}, "consent.v1.AAAA")
        assert len(notes) == 5
        assert await has_run(kernel)
        assert text_of(await raw.call({"year": 20}, state)) == "dropped 20"
        await raw.refusal({"year": 20}, state)
        denied = await raw.call({"year": 20})
        assert (await raw.call({"year": 20}, denied.request_state, DENY)).is_error
        await raw.refusal({"year": 20}, denied.request_state)
        silent = await raw.call({"year": 20})
        assert (await raw.call({"year": 20}, silent.request_state, None)).is_error
    assert user.asked == []
    assert await has_run(kernel, 20)


async def test_a_no_to_one_call_holds_although_another_one_was_allowed_for_longer(kernel):
    async with connected(kernel, "auto", User("cancel")) as client:
        raw = Raw(client)
        first, second = [await raw.call({"year": year}) for year in (50, 51)]
        allowed = await raw.call({"year": 50}, first.request_state, ALLOW_HOUR)
        denied = await raw.call({"year": 51}, second.request_state, DENY)
    assert text_of(allowed) == "dropped 50"
    assert "did not allow it" in text_of(denied)
    assert await has_run(kernel, 50)


async def test_a_state_is_for_the_caller_and_the_program_that_were_asked(kernel):
    user = User("cancel")
    async with linked_server(kernel) as (server, _):
        async with Client(in_process(server), mode="auto", elicitation_callback=user) as client:
            question = await Raw(client).call({"year": 22})
        info = types.Implementation(name="another program", version="1")
        async with Client(
            in_process(server), mode="auto", elicitation_callback=user, client_info=info
        ) as other:
            await Raw(other).refusal({"year": 22}, question.request_state)
        server.default_caller = Caller(name="another")
        async with Client(in_process(server), mode="auto", elicitation_callback=user) as client:
            await Raw(client).refusal({"year": 22}, question.request_state)
    async with connected(kernel, "auto", user) as elsewhere:  # another bridge
        await Raw(elsewhere).refusal({"year": 22}, question.request_state)
    assert await has_run(kernel)


async def test_an_answer_that_comes_too_late_is_a_no(kernel):
    notes = Notes()
    policy = ConsentPolicy(timeout=0)
    async with connected(kernel, "auto", User("cancel"), consent=policy, audit=notes) as (client):
        raw = Raw(client)
        late = await raw.call({"year": 23}, (await raw.call({"year": 23})).request_state)
    assert late.is_error
    assert "Nobody answered the question within 0 ms." in text_of(late)
    assert [type(note) for note in notes] == [CallRefusal]
    assert await has_run(kernel)


# -- clients that show no forms: the notebook asks -------------------------------------------------


class Reader:
    """Whoever has the notebook open."""

    def __init__(self, kernel):
        self.kernel = kernel

    async def wait(self, kind="display_data"):
        """Wait until the notebook shows something, and return its text."""
        content = await anyio.to_thread.run_sync(
            lambda: self.kernel.wait_for(kind), abandon_on_cancel=True
        )
        return content["data"]["text/plain"]

    async def answer(self, text, words):
        """Answer a question as its text says, and return what the notebook says to that."""
        (line,) = re.findall(rf"`(%mcp {words[0]} \d+)`", text)
        output = await anyio.to_thread.run_sync(
            self.kernel.ok, " ".join([line, *words[1:]]), abandon_on_cancel=True
        )
        return output.stdout.strip()


@asynccontextmanager
async def calling(client, *names, **arguments):
    """Call a tool beside the block; the result is in the list that this yields, once it ends."""
    results = []

    async def call():
        results.append(await client.call_tool(*names, arguments))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        yield results


@pytest.mark.parametrize(
    ("words", "said", "years"),
    [
        (["allow"], "You allowed this call.", (40,)),
        (["allow", "session"], "You allowed this call and further calls of this tool", (40,)),
        (["deny"], "You denied this call.", ()),
    ],
)
async def test_the_notebook_asks_for_a_client_that_shows_no_forms(kernel, era, words, said, years):
    reader, notes = Reader(kernel), Notes()
    async with connected(kernel, era, audit=notes) as client:
        async with calling(client, "drop", year=40, key="hunter2") as results:
            text = await reader.wait()
            status = await anyio.to_thread.run_sync(kernel.ok, "%mcp status")
            answered = await reader.answer(text, words)
        (result,) = results
        if "session" in words:
            assert text_of(await client.call_tool("drop", {"year": 41})) == "dropped 41"
            years = (*years, 41)
    assert answered.startswith(f"drop: {said}")
    assert "Tool: drop\n" in text
    assert "    year = 40\n" in text
    assert "hunter2" not in text
    assert "To answer within 10 min, run one of these lines in a cell:" in text
    assert ("for an hour" if era == "auto" else "until the client disconnects") in text
    assert re.search(r"Question \d+: may drop run\? \d+ min left to answer", status.text)
    assert result.is_error is (not years)
    assert text_of(result) == "dropped 40" if years else "did not allow it" in text_of(result)
    assert isinstance(notes[0], CallStart if years else CallRefusal)
    assert await has_run(kernel, *years)


async def test_the_notebook_asks_while_a_cell_runs_and_no_answer_is_a_no(kernel, era):
    reader = Reader(kernel)
    policy, told = ConsentPolicy(timeout=1), []

    async def hear(_done, _total, message):
        told.append(message)

    def ask_beside_a_cell():
        with kernel.busy():
            anyio.from_thread.run(call)
            shown.append(anyio.from_thread.run(reader.wait))
            shown.append(anyio.from_thread.run(reader.wait, "update_display_data"))

    async def call():
        results.append(await client.call_tool("drop", {"year": 42}, progress_callback=hear))

    shown, results = [], []
    async with connected(kernel, era, consent=policy) as client:
        await anyio.to_thread.run_sync(ask_beside_a_cell)
    assert "    year = 42\n" in shown[0]
    assert "Not answered in time" in shown[1]
    assert "Nobody answered the question within 1.0 s." in text_of(results[0])
    if era == "legacy":  # in one process, clients of the other era ask for no progress
        assert told[0].startswith("a person is being asked in the notebook 'kernel-")
    assert await has_run(kernel)


async def test_a_question_of_a_cancelled_call_leaves_the_notebook(kernel):
    reader = Reader(kernel)
    async with connected(kernel, "legacy") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "drop", {"year": 43})
            text = await reader.wait()
            tasks.cancel_scope.cancel()
        assert "Not answered in time, or withdrawn by the client" in await reader.wait(
            "update_display_data"
        )
    (number,) = re.findall(r"%mcp deny (\d+)", text)
    output = await anyio.to_thread.run_sync(kernel.run, f"%mcp allow {number}")
    assert f"Question {number} is not open" in output.text
    assert await has_run(kernel)


async def test_a_call_is_lost_if_its_kernel_leaves_while_the_notebook_asks(kernel):
    reader = Reader(kernel)
    async with (
        linked_server(kernel) as (server, links),
        Client(in_process(server), mode="legacy") as client,
        calling(client, "drop", year=44) as results,
    ):
        await reader.wait()
        for link in links.open_links:
            link.close("The kernel was restarted.")
    assert results[0].is_error
    assert "The kernel was restarted." in text_of(results[0])
    assert "withdrawn" in await reader.wait("update_display_data")
    assert await has_run(kernel)


async def test_a_call_about_which_nobody_can_be_asked_is_refused(kernel, era):
    notes = Notes()
    async with linked_server(kernel, audit=notes) as (server, links):
        (link,) = links.open_links
        link.requests.can_ask_consent = False
        async with Client(in_process(server), mode=era) as client:
            result = await client.call_tool("drop", {"year": 45})
    assert result.is_error
    assert "Nobody can be asked: the client has not declared MCP's elicitation" in text_of(result)
    assert "runs without a frontend" in text_of(result)
    assert isinstance(notes[0], CallRefusal)
    assert await has_run(kernel)


# -- what was allowed for a while


class Connection:
    """What lasts as long as a client."""


def test_what_is_allowed_on_a_connection_ends_with_it():
    grants, here, there = ask_consent.Grants(), Connection(), Connection()
    grants.add("owner", "drop", connection=here)
    assert grants.has("owner", "drop", connection=here)
    assert not grants.has("owner", "other", connection=here)
    assert not grants.has("reader", "drop", connection=here)
    assert not grants.has("owner", "drop", connection=there)
    assert not grants.has("owner", "drop", client="")
    del here
    gc.collect()
    assert not grants._by_connection


def test_without_a_connection_it_is_for_one_caller_with_one_program():
    grants = ask_consent.Grants()
    grants.add("owner", "drop", client="Claude 2")
    assert grants.has("owner", "drop", client="Claude 2")
    assert not grants.has("owner", "drop", client="Claude 3")
    assert not grants.has("reader", "drop", client="Claude 2")
    grants = ask_consent.Grants(seconds=-1)
    grants.add("owner", "late", client="Claude 2")
    assert not grants.has("owner", "late", client="Claude 2")


def test_only_so_many_are_kept():
    grants = ask_consent.Grants()
    for number in range(ask_consent.MAX_GRANTS + 1):
        grants.add("owner", str(number))
    assert not grants.has("owner", "0")
    assert grants.has("owner", "1")
