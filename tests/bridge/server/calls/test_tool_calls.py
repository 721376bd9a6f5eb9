"""What a client hears of its call before the result; the rest is in tests/e2e."""

import sys
from itertools import pairwise
from math import inf, nan
from types import SimpleNamespace

import pytest

from mcp_notebook.bridge.server.calls.tool_calls import make_log_sender, make_progress_sender
from mcp_notebook.wire import messages


@pytest.mark.anyio
@pytest.mark.parametrize(
    "values",
    [[None] * 3, [0, 0, 0], [1, 1, 1], [3, 2, 1], [1e20, 1e20, 1], [5, None, 5.0000001, 5, None]],
)
async def test_progress_increases_with_each_notice_whatever_the_tool_reports(values):
    heard = []

    async def report(progress, total, message):
        heard.append((progress, total, message))

    send = make_progress_sender(SimpleNamespace(channel=SimpleNamespace(send_progress=report)))
    for value in values:
        await send(messages.Progress(id=1, progress=value, total=9, message="on \ud800"))
    assert len(heard) == len(values)
    assert all(before < after for (before, *_), (after, *_) in pairwise(heard))
    assert all(rest == [9, "on ?"] for _, *rest in heard)


@pytest.mark.anyio
async def test_progress_is_told_in_numbers_that_json_has():
    heard = []

    async def report(progress, total, _message):
        heard.append((progress, total))

    send = make_progress_sender(SimpleNamespace(channel=SimpleNamespace(send_progress=report)))
    for value in (inf, 1.0, nan, sys.float_info.max, None):  # after which there is none
        await send(messages.Progress(id=1, progress=value, total=value))
    assert heard == [(0.0, None), (1.0, 1.0), (1.000001, None), (sys.float_info.max,) * 2]


@pytest.mark.anyio
@pytest.mark.parametrize(("level", "told"), [("error", "error"), ("loud", "info")])
async def test_a_log_message_of_an_unknown_level_is_an_ordinary_one(level, told):
    heard = []

    async def send_log(level, _logger, text):
        heard.append((level, text))

    send = make_log_sender(SimpleNamespace(channel=SimpleNamespace(send_log=send_log)))
    await send(messages.Log(id=1, level=level, text="It began."))
    assert heard == [(told, "It began.")]
