"""Changes of the tools are due until bridges have been told all of them."""

import asyncio

import pytest

from mcp_notebook.kernel.link.tool_changes import ToolChanges


@pytest.fixture
def loop():
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def test_a_change_is_due_from_the_moment_that_it_is_made_until_it_is_told(loop):
    due_meanwhile = []
    changes = ToolChanges(lambda: due_meanwhile.append(changes.are_due))
    assert not changes.are_due
    changes.announce(loop)
    assert changes.are_due
    loop.run_until_complete(asyncio.sleep(0))
    changes.send()
    assert due_meanwhile == [True]
    assert not changes.are_due


def test_what_changes_while_bridges_are_told_is_told_next(loop):
    sent = []

    def send():
        sent.append("tools")
        if len(sent) == 1:
            changes.announce(loop)

    changes = ToolChanges(send)
    changes.announce(loop)
    loop.run_until_complete(asyncio.sleep(0))
    changes.send()
    assert changes.are_due
    loop.run_until_complete(asyncio.sleep(0))
    changes.send()
    assert not changes.are_due
    assert len(sent) == 2
