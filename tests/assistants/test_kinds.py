"""Real assistants with the prompts and resources of a notebook: what comes of them.

Each test begins conversations, as a user would. What depends on the assistant is in `seen.toml`, by
the names of the tests; the documentation's table is made from it.
"""

import json
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from assistants import ANSWER, ASSISTANTS, QUESTION, Assistant, write_json
from codex_app import CodexApp
from conversation import Commands, set_up
from judging_stdio import check_judged
from kinds import CELLS, LOOK, REPORT
from live import live_kernel
from npm_packages import LIMIT
from seen import SEEN
from stand_in import PATIENCE, StandIn, stand_in
from talks import LOAD, end, yes
from terminal import in_terminal

CHART = "%%mcp_prompt chart(column: str)\nDraw {column}."
ORDERS = re.compile(r"region\\+nEU\\+nUS")
"""The table in JSON, and in a text that contains JSON."""
PNG = "iVBORw0KGgo"
"""How a picture begins in base64."""
pytestmark = [pytest.mark.assistants, pytest.mark.timeout(LIMIT + 2 * PATIENCE)]


@dataclass
class Desk:
    """Where an assistant is asked one thing after another."""

    name: str
    assistant: Assistant
    home: Path
    model: StandIn
    commands: Commands

    @contextmanager
    def begin(self, *words):
        """Begin a conversation with these words, and end it."""
        arguments = [
            word
            for argument in self.assistant.arguments
            for word in (words if argument == QUESTION else [argument])
        ]
        process = self.commands.start(*arguments, has_pipes=self.assistant.is_app)
        self.model.watch(process, self.home / "said")
        try:
            if self.assistant.is_app:
                CodexApp(process, ANSWER).say(*words)
            yield
        finally:
            end(process)
            self.model.begin_again()

    def ask(self, *words):
        """Return what the model is told; what the user is told, if the model is not asked."""
        with self.begin(*words):
            turn = self.model.find_turn()
        if turn is None:
            return (self.home / "said").read_text("utf-8")
        said = [turn.get(key) for key in ("messages", "input", "contents")]
        return json.dumps(said, ensure_ascii=False)

    def ask_with_prompt(self, name, value=""):
        """Begin with a prompt; return what the model, or else the user, is told."""
        words = [word.format(name=name, value=value).strip() for word in self.assistant.prompt]
        return self.ask(*filter(None, words))

    def call_until(self, text, tool, **arguments):
        """Let the model call a tool until it is told this, as the server may not have started."""
        if self.assistant.search:
            self.model.call(self.assistant.search, query=f"select:{tool}")
        deadline = time.monotonic() + PATIENCE
        while text not in (told := self.model.call(tool, **arguments).text):
            assert time.monotonic() < deadline, told
        return told


@pytest.fixture(scope="module", params=ASSISTANTS)
def desk(request, module_home, modules):
    assistant = ASSISTANTS[request.param]
    home = module_home / str(request.param_index)  # short, for the sockets below it
    home.mkdir()
    with (
        live_kernel(home, notebook=str(home / "kinds.ipynb")) as kernel,
        stand_in(assistant.api()) as model,
    ):
        for cell in (LOAD, *CELLS, LOOK, CHART):
            kernel.ok(cell)
        commands = set_up(assistant, home, model.url, modules)
        yield Desk(request.param, assistant, home, model, commands)
    check_judged(home)


@pytest.fixture
def expected(request, desk):
    """What was seen of this assistant in this test."""
    return SEEN[desk.name][request.node.originalname.removeprefix("test_")]


def test_prompts(desk, expected):
    if not desk.assistant.prompt:
        assert expected == "no"
        return
    assert "Draw rain." in desk.ask_with_prompt("chart", "rain")
    told = desk.ask_with_prompt("report", "2026")
    assert ("yes" if REPORT in told else "texts only") == expected, told
    # Gemini CLI, if it hears of a change while it waits for its first list.
    assert "already registered" not in (desk.home / "said").read_text("utf-8")


def test_prompt_messages(desk, expected):
    if not desk.assistant.prompt:
        assert expected == "no"
        return
    told = desk.ask_with_prompt("look")
    assert "Look at this:" in told
    assert ORDERS.search(told)
    assert "What is odd?" in told
    assert ("all" if PNG in told else "all texts") == expected


def test_wrong_prompt_arguments(desk, expected):
    if not desk.assistant.prompt:
        assert expected == "no"
        return
    assert yes("year: got" in desk.ask_with_prompt("report", "soon")) == expected


def test_mentions(desk, expected):
    if not desk.assistant.mention:
        assert expected in ("no", "on screen")
        return
    told = desk.ask(f"Look at {desk.assistant.mention.format('data://orders')} please.")
    assert yes(ORDERS.search(told)) == expected


def test_resource_lists(desk, expected):
    if not desk.assistant.lister:
        assert expected == "no"
        return
    given = desk.assistant.reader_arguments
    with desk.begin(QUESTION):
        desk.call_until("data://orders", desk.assistant.lister, **given)
        if desk.assistant.template_lister:
            desk.call_until("frame://{name}", desk.assistant.template_lister, **given)
    assert ("yes" if desk.assistant.template_lister else "without templates") == expected


def test_declared_resources(desk, expected):
    reader, given = desk.assistant.reader, desk.assistant.reader_arguments
    if not reader:
        assert expected == "no"
        return
    with desk.begin(QUESTION):
        desk.call_until("EU", reader, uri="data://orders", **given)
        told = desk.model.call(reader, uri="frame://orders", **given).text
    assert ("yes" if "EU" in told else "listed ones") == expected


@pytest.mark.parametrize("desk", ["Claude Code"], indirect=True)
def test_claude_code_shows_prompts_and_resources_and_completes_the_names_of_a_template(desk):
    work = desk.home / "work"
    answered = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["any"], "rejected": []},
        "projects": {str(work): {"hasTrustDialogAccepted": True}},
    }
    write_json(desk.home / ".claude.json", answered)
    with in_terminal(desk.commands.command, work, desk.commands.env) as terminal:
        terminal.wait_for("Claude Code v")
        terminal.type("/mcp__notebook__rep")
        terminal.wait_for("notebook:report (MCP)", "arguments: year, region")
        terminal.type("\x15")
        terminal.type("Look at @notebook:")
        terminal.wait_for("notebook:data://orders", "notebook:skill://weekly", "A table.")
        terminal.type("frame")
        terminal.wait_for("frame")
        terminal.type("\t")
        terminal.wait_for("customers")
        terminal.type("\x15")
        terminal.type("Look at @notebook:data://orders .\r")
        assert ORDERS.search(json.dumps(desk.model.turn["messages"]))
    desk.model.begin_again()
