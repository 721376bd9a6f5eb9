"""When a kernel is started again: the delays, the number of attempts, and trust."""

import pytest

from mcp_notebook.bridge.headless import restarts
from mcp_notebook.bridge.headless.restarts import Restarts
from mcp_notebook.errors import UntrustedNotebook


def test_delays_double_up_to_a_limit_and_begin_anew_after_a_steady_time():
    kernel = Restarts()
    assert [kernel.take_delay() for _ in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]
    kernel.note_death(restarts.STEADY_AFTER - 1)
    assert kernel.take_delay() == 30
    kernel.note_death(restarts.STEADY_AFTER + 1)
    assert [kernel.take_delay() for _ in range(3)] == [0, 1, 2]


def test_only_failures_in_a_row_are_counted():
    kernel = Restarts()
    assert [kernel.note_failure() for _ in range(2)] == [False, False]
    kernel.note_success()
    assert [kernel.note_failure() for _ in range(3)] == [False, False, True]


@pytest.mark.anyio
async def test_a_reason_for_distrust_is_told_once_until_it_changes():
    kernel = Restarts(trust_interval=0.0)
    problems, told = ["changed", "changed", "is new", "changed"], []

    async def start():
        if problems:
            raise UntrustedNotebook(problems.pop(0), notebook="a")
        return "served"

    assert await kernel.start_when_trusted(start, lambda error: told.append(str(error))) == "served"
    assert told == ["changed", "is new", "changed"]
