"""A bridge's questions on their way to the notebook, and the answers on theirs back."""

import anyio
import pytest

from mcp_notebook.kernel.link.conversation import ConsentQuestions
from mcp_notebook.wire import messages

pytestmark = pytest.mark.anyio


class Prompts:
    """A notebook that keeps what it is asked."""

    def __init__(self):
        self.answers = {}
        self.withdrawn = []

    def ask(self, question, answer):
        number = 100 + question.id
        self.answers[number] = answer
        return number

    def withdraw(self, number):
        self.withdrawn.append(number)


def question(number):
    return messages.AskConsent(id=number, tool="drop", text="May it?", seconds=9, session="hour")


async def test_an_answer_from_any_thread_goes_to_the_bridge_once():
    prompts, sent = Prompts(), []
    questions = ConsentQuestions(prompts, sent.append)
    questions.ask(question(1))
    for _ in range(2):
        await anyio.to_thread.run_sync(prompts.answers[101], "once")
    await anyio.wait_all_tasks_blocked()
    assert sent == [messages.Consent(id=1, decision="once")]
    questions.withdraw(1)
    questions.withdraw(2)
    assert prompts.withdrawn == []


async def test_what_is_still_open_is_closed_with_the_conversation():
    prompts, sent = Prompts(), []
    questions = ConsentQuestions(prompts, sent.append)
    questions.ask(question(1))
    questions.ask(question(2))
    questions.withdraw(2)
    questions.close()
    assert prompts.withdrawn == [102, 101]
    prompts.answers[101]("once")
    await anyio.wait_all_tasks_blocked()
    assert sent == []


async def test_where_nobody_sees_the_notebook_the_answer_is_no():
    sent = []
    ConsentQuestions(None, sent.append).ask(question(1))
    assert sent == [messages.Consent(id=1, decision="deny")]
