"""Questions to a notebook, as the bridge has them."""

import asyncio

import anyio
import pytest

from mcp_notebook.bridge.kernels.consent_requests import ConsentRequests
from mcp_notebook.errors import KernelGone
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


def start(requests):
    return asyncio.ensure_future(requests.ask("drop", "May it?", seconds=9, scope="more"))


async def test_a_question_gets_its_own_answer_and_only_once():
    sent = []
    requests = ConsentRequests(iter(range(1, 9)).__next__, sent.append)
    first, second = start(requests), start(requests)
    await anyio.wait_all_tasks_blocked()
    assert sent[0] == messages.AskConsent(
        id=1, tool="drop", text="May it?", seconds=9, scope="more"
    )
    requests.take_answer(messages.Consent(id=2, decision="deny"))
    requests.take_answer(messages.Consent(id=2, decision="once"))
    requests.take_answer(messages.Consent(id=7, decision="once"))
    assert await second == "deny"
    assert not first.done()
    requests.take_answer(messages.Consent(id=1, decision="session"))
    assert await first == "session"
    assert len(sent) == 2


async def test_a_question_that_nobody_waits_for_is_withdrawn():
    sent = []
    requests = ConsentRequests(iter(range(1, 9)).__next__, sent.append)
    question = start(requests)
    await anyio.wait_all_tasks_blocked()
    question.cancel()
    with pytest.raises(asyncio.CancelledError):
        await question
    assert sent[1:] == [messages.WithdrawConsent(id=1)]
    requests.take_answer(messages.Consent(id=1, decision="once"))


async def test_questions_end_with_their_kernel():
    requests = ConsentRequests(iter(range(1, 9)).__next__, lambda _: None)
    requests.is_possible = True
    question = start(requests)
    await anyio.wait_all_tasks_blocked()
    requests.close("The kernel died.")
    with pytest.raises(KernelGone, match="died"):
        await question
    assert not requests.is_possible
