"""Until when the same call goes to the same replica; the rest: tests/e2e/test_replicas.py."""

import pytest

from mcp_notebook.bridge.calls.kernel_choice import KernelChoice
from mcp_notebook.bridge.kernels.running_call import RunningCall
from mcp_notebook.content import Result
from mcp_notebook.wire import task_messages

pytestmark = pytest.mark.anyio
TASK = task_messages.TaskInfo(
    id="train-1-2", tool="train", status="working", created=0, updated=0, version=0
)


@pytest.mark.parametrize(
    ("ending", "is_forgotten"),
    [("answered", True), ("given up", False), ("a task", False), ("given up late", False)],
)
async def test_the_same_call_goes_to_its_kernel_until_a_client_has_the_result(ending, is_forgotten):
    asked = []
    choice = KernelChoice(None, None, asked.append)
    call = RunningCall(1, lambda _: None)
    call.is_kept = True
    if ending == "given up":
        call.cancel("the client left")
    elif ending == "a task":
        call.handle(task_messages.TaskState(id=1, task=TASK), [])
    call.end(Result())
    choice.note_end(call)
    if ending == "given up late":
        call.leave()
    (is_taken,) = asked
    assert is_taken() is is_forgotten
