"""What is printed for people does nothing to their terminals."""

import ast
import io
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from forked_command import list_words
from hypothesis import given
from hypothesis import strategies as st
from live import kernel_env, live_kernel

import mcp_notebook
from mcp_notebook.text.terminal import LogFormatter, print_data, print_note, print_output
from mcp_notebook.text.wording import make_printable

HOSTILE = (
    "\x1b]0;owned\x07"  # the window's title
    "\x1b]8;;http://evil.example\x1b\\a link\x1b]8;;\x1b\\"
    "\x1b]52;c;cm0gLXJmIH4=\x07"  # the clipboard
    "\x1b]52;c;cm0gLXJmIH4="  # without its end
    "\x9b2J\x9d0;owned\x9c\x90q\x9c"  # the same codes in one byte
    "harmless\rmcp-notebook: all is well"  # over what was said
    "\x08\x7f\x0b\x0c\x05"
    "\u202egpj.exe\u202c\u2066a\u2069\u200e\u200f\u061c"  # other directions
    "\u2028a line\u2029a line\x85a line"
)
ALLOWED = re.compile(r"\x1b\[[0-9;]*m")
"""Colours, which are rich's own."""
TOOLS = (
    f"""
from mcp_notebook import Context, ToolError
HOSTILE = {HOSTILE!r}
%load_ext mcp_notebook
""",
    f"""%%mcp_tool
def give(how: str, ctx: Context) -> str:
    {f"Give it. {HOSTILE}"!a}
    ctx.progress(1, 2, HOSTILE)
    if how == "raise":
        raise ValueError(HOSTILE)
    if how == "refuse":
        raise ToolError(HOSTILE)
    print(HOSTILE)
    return HOSTILE
""",
)


HARM = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f"
    "\\u2028-\\u202e\\u2066-\\u206f\\ud800-\\udfff]"
)


def list_harm(text):
    return sorted(set(HARM.findall(text)))


@given(st.text() | st.text(alphabet=HOSTILE))
def test_no_text_has_a_character_that_harms(text):
    printable = make_printable(text)
    assert list_harm(printable) == []
    assert make_printable(printable) == printable


def test_what_harms_is_written_out_and_all_else_stays():
    assert (
        make_printable("a\x9bb\u202ec\rd\x1be\r\n\tf") == r"a\u009bb\u202ec\u000dd\u001be" + "\n\tf"
    )
    for text in ("naïve Ωμέγα 東京 🏴‍☠️ שלום", "a\u200cb\u200d\xa0c\xadd", "[31m"):
        assert make_printable(text) == text


def test_data_goes_to_a_file_as_it_is_and_to_a_terminal_without_harm(capsys, monkeypatch):
    print_data(HOSTILE)
    assert capsys.readouterr().out == f"{HOSTILE}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_data(HOSTILE)
    print_output(HOSTILE)
    print_note(HOSTILE)
    said = capsys.readouterr()
    assert list_harm(said.out + said.err) == []


def test_no_text_in_a_line_of_the_log_looks_like_a_line_of_its_own():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter())
    logger = logging.getLogger(__name__)
    logger.addHandler(handler)
    logger.warning("a tool called %s", f"x\n2026-11-21 refused nothing{HOSTILE}")
    logger.warning("failed", exc_info=ValueError("y\n2026-11-21 refused nothing"))
    logger.removeHandler(handler)
    lines = stream.getvalue().splitlines()
    assert list_harm(stream.getvalue()) == []
    assert [line for line in lines if line.startswith("2026")] == []
    assert [line for line in lines if line[0] != " "] == [lines[0], "failed"]


def test_nothing_else_prints():
    package = Path(mcp_notebook.__file__).parent
    paths = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    calls = [
        (path, node.func)
        for path, text in paths.items()
        if "print" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
    ]
    printing = {path for path, name in calls if isinstance(name, ast.Name) and name.id == "print"}
    assert printing == {package / "text" / "terminal.py"}


# -- real commands, on a terminal ------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernel(module_home):
    """A live notebook with an evil name and an evil tool."""
    path = module_home / f"{HOSTILE.replace('/', '')}.ipynb"
    path.touch()
    with live_kernel(module_home, notebook=str(path)) as kernel:
        for cell in TOOLS:
            kernel.ok(cell)
        yield kernel


def run_on_terminal(home, *arguments):
    """Run a command with a terminal as stdin, stdout and stderr; return what came to it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        list_words(*arguments),
        env=kernel_env(home) | {"TERM": "xterm", "COLUMNS": "1000"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # its other end is closed
        pass
    finally:
        os.close(ours)
        process.wait(60)
    return ALLOWED.sub("", said.decode().replace("\r\n", "\n"))


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("list",), r"Give it."),
        (("list", "--json"), r"\u009b2J"),
        (("call", "give", "how=return"), r"\u202egpj.exe"),
        (("call", "give", "how=raise"), r"ValueError: "),
        (("call", "give", "how=refuse"), r"\u202egpj.exe"),
        (("call", HOSTILE), r"\x1b]52;c"),
        (
            ("call", "give", f"how=x{HOSTILE}", f"{HOSTILE}=1"),
            r"no such parameter",
        ),
    ],
    ids=["list", "json", "result", "error", "refusal", "name", "arguments"],
)
def test_no_command_lets_somebody_elses_text_harm_the_terminal(kernel, arguments, expected):
    said = run_on_terminal(kernel.home, *arguments)
    assert expected in said
    assert list_harm(said) == []
    assert "owned" not in said.replace("0;owned", "")  # written out, if at all


def test_no_magic_lets_somebody_elses_text_harm_the_notebook(kernel):
    for line in (
        "call give how=return",
        "call give how=raise",
        "status",
        "list",
        f"call {HOSTILE}",
    ):
        output = kernel.run(f"get_ipython().run_line_magic('mcp', {line!r})")
        assert list_harm(ALLOWED.sub("", output.text)) == [], line
        htmls = [data.get("text/html", "") for data in output.displays]
        assert list_harm("".join(htmls)) == [], line
