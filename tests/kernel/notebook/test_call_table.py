"""The table of calls: what each line says, and that nobody's text is markup or more than a line."""

import re
import time

import pytest
from IPython.core.error import UsageError

from mcp_notebook.kernel.calls.call import CallState
from mcp_notebook.kernel.calls.call_log import LoggedCall
from mcp_notebook.kernel.notebook.call_table import (
    DEFAULT_NUMBER,
    LogQuery,
    build_call_table,
    read_query,
)
from mcp_notebook.kernel.tools.context import ClientProgram


def entry(**changes):
    fields = {
        "number": 7,
        "came": time.time(),
        "client": ClientProgram("editor", "1.2"),
        "tool": "rain",
        "arguments": {"city": "Seattle", "year": 2012},
        "state": CallState.DONE,
        "queue_seconds": 0.0004,
        "run_seconds": 3.42,
        "size": 1234,
        "kinds": ("text", "image/png"),
    }
    return LoggedCall(**fields | changes)


def text_of(*entries, note=""):
    return build_call_table(entries, note)["text/plain"]


def test_a_line_has_everything_about_a_call():
    head, line = text_of(entry()).splitlines()
    assert head.split() == ["no.", "received", "client", "call", "state", "waited", "ran", "result"]
    line = re.sub(r"\d\d:\d\d:\d\d", "TIME", line)
    assert re.split("  +", line) == [
        "7",
        "TIME",
        "editor 1.2",
        "rain(city='Seattle', year=2012)",
        "done",
        "0 ms",
        "3.4 s",
        "text, image/png: 1.23 kB",
    ]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"client": None}, "this notebook"),
        ({"client": ClientProgram()}, "unknown client"),
        ({"state": CallState.QUEUED}, "queued"),
        (
            {"state": CallState.CANCELLED, "stopped_by": "its client"},
            "stopped  0 ms    3.4 s  by its client",
        ),
        ({"kinds": (), "size": 0}, "nothing"),
        ({"came": 0.0}, "1970-01-01"),
        ({"arguments": {"a": "x" * 500}}, "xxx…"),
        ({"arguments": {f"a{number}": 1 for number in range(100)}}, "a7=1, a8=1, …"),
        ({"state": CallState.TIMED_OUT, "error": "Too long.\nMore."}, "Too long."),
        ({"state": CallState.FAILED, "error": "x" * 500}, "x" * 59 + "…"),
    ],
)
def test_what_is_unusual_is_said(changes, shown):
    text = text_of(entry(**changes))
    assert shown in text
    assert len(text) < 700


def test_how_long_it_ran_is_said_only_of_a_call_that_has_begun():
    ran = text_of(entry(run_seconds=0.0001), entry(run_seconds=0.0, state=CallState.CANCELLED))
    assert [line.count(" ms") for line in ran.splitlines()] == [0, 2, 1]


def test_a_whole_error_can_be_unfolded():
    html = build_call_table([entry(error="One line.\n<b>Another</b> line.")])["text/html"]
    assert "<details><summary style=" in html
    assert "&lt;b&gt;Another&lt;/b&gt; line.</pre>" in html
    assert "<details>" not in build_call_table([entry(error="One line.")])["text/html"]


EVIL = "<script>alert(1)</script>'\"\n\x1b[31m\u202e"


@pytest.mark.parametrize(
    "changes",
    [
        {"tool": EVIL},
        {"client": ClientProgram(EVIL, EVIL)},
        {"arguments": {EVIL: EVIL}},
        {"error": EVIL, "state": CallState.FAILED},
        {"kinds": (EVIL,)},
    ],
)
def test_nobodys_text_is_markup_or_more_than_one_line(changes):
    bundle = build_call_table([entry(**changes)], "Two of three.")
    assert "<script" not in bundle["text/html"]
    assert "alert" in bundle["text/html"]
    for text in bundle.values():
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert len(bundle["text/plain"].splitlines()) == 3


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("", LogQuery()),
        ("rain", LogQuery(tool="rain")),
        ("-n 5", LogQuery(most=5)),
        ("-n5 --errors rain", LogQuery(tool="rain", most=5, errors=True)),
        ("rain -n=5", LogQuery(tool="rain", most=5)),
    ],
)
def test_options_and_the_tool_come_in_any_order(line, query):
    assert read_query(line) == query
    assert LogQuery().most == DEFAULT_NUMBER


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-n", "Write a number after `-n`"),
        ("-n 0", "Write a number after `-n`"),
        ("-n five", "Write a number after `-n`"),
        ("--all", "no option `--all`"),
        ("rain snow", "write `rain` or `snow`"),
    ],
)
def test_what_cannot_be_understood_says_what_to_write(line, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        read_query(line)


def test_a_query_selects_by_tool_and_failure():
    calls = [entry(number=1), entry(number=2, tool="b", error="No."), entry(number=3, error="No.")]
    assert [call.number for call in LogQuery(tool="rain").select(calls)] == [1, 3]
    assert [call.number for call in LogQuery(errors=True).select(calls)] == [2, 3]
