"""Tasks of a tool on the kernel's loop: in a real kernel, their steps in the test's own process."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from live import text_of

from mcp_notebook.kernel.calls.task_guards import Steps

LIMIT = 30
TOOLS = '''%%mcp_tool
import asyncio, sys

async def _child(how):
    await asyncio.sleep(0)
    if how == "value":
        raise ValueError("bad")
    raise KeyboardInterrupt if how == "interrupt" else SystemExit(3)

async def wait_for(how: str) -> str:
    """Waits for a task that fails."""
    await asyncio.create_task(_child(how))

async def group(how: str) -> str:
    """The same in a group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_child(how))

async def outlived(how: str) -> str:
    """Does not wait for it."""
    global task
    task = asyncio.create_task(_child(how))
    return "returned"

async def never_begun() -> str:
    """Cancels a task before its first step."""
    task = asyncio.create_task(_child("exit"))
    task.cancel()
    await asyncio.wait([task])
    return str(task.cancelled())
'''


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    shared_kernel.ok(TOOLS)
    return shared_kernel


@pytest.mark.parametrize("tool", ["wait_for", "group", "outlived"])
@pytest.mark.parametrize(
    ("how", "shown"),
    [("value", "ValueError"), ("interrupt", "KeyboardInterrupt"), ("exit", "SystemExit: 3")],
)
def test_whatever_a_task_of_a_tool_raises_the_kernel_lives_on(kernel, link, tool, how, shown):
    result = link.call(tool, how=how)
    assert (shown if tool != "outlived" else "returned") in text_of(result)
    assert "await asyncio.sleep" not in text_of(result)
    assert kernel.ok("await asyncio.sleep(0); print('well')").stdout == "well\n"


def test_a_task_that_never_began_is_no_cause_of_a_warning(kernel, link):
    assert text_of(link.call("never_begun")) == "True"
    assert kernel.ok("import gc; gc.collect(); None").text.strip() == ""


def test_a_step_is_interrupted_also_when_it_has_run_a_step_within_it():
    steps = Steps()

    def step():
        steps.run(list)
        threads.submit(steps.interrupt).result(LIMIT)

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyboardInterrupt):
            steps.run(step)
        assert steps.interrupted
        assert threads.submit(steps.interrupt).result(LIMIT) is False
