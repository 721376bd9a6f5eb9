"""The tasks of a kernel: who finds them, and for how long."""

import asyncio
import gc
import weakref

import pytest
from held_items import count_items

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CannotElicit
from mcp_notebook.kernel.calls.call import Call, CallState
from mcp_notebook.kernel.tasks.task_store import TaskStore
from mcp_notebook.kernel.tools.open_questions import Elicitations
from mcp_notebook.wire import messages, task_ids

pytestmark = pytest.mark.anyio


def add(store, tool="train", owner="ann", elicitations=None):
    call = Call(tool)
    call.move(CallState.RUNNING)
    return store.add(owner, call, elicitations or Elicitations())


def end(store, task, text="done"):
    task.call.move(CallState.DONE)
    store.end(task, Result([Text(text)]))


@pytest.fixture
def store():
    return TaskStore("k1", ttl=3600, max_bytes=1_000)


async def test_only_the_owner_finds_a_task_and_no_id_can_be_guessed(store):
    one, other = add(store), add(store)
    assert store.find(one.id, "ann") is one
    assert store.find(one.id, "bob") is None
    assert store.find("train-k1-0", "ann") is None
    assert store.find(other.id, other.owner) is other
    assert task_ids.find_kernel_id(one.id) == "k1"
    first, second = (task.id.removeprefix("train-k1-") for task in (one, other))
    assert first != second
    assert len(first) == 32  # 128 bits


@pytest.mark.slow
async def test_a_task_is_forgotten_some_time_after_its_end():
    sizes = asyncio.Queue()
    store = TaskStore("k1", ttl=0.05, max_bytes=1_000, reserve=sizes.put_nowait)
    running, ended = add(store), add(store)
    end(store, ended)
    assert ended.ends is not None
    assert store.find(ended.id, "ann") is ended
    assert [await sizes.get() for _ in range(2)] == [4, 0]
    assert store.find(ended.id, "ann") is None
    assert store.find(running.id, "ann") is running
    assert running.ends is None


async def test_tasks_that_are_forgotten_leave_nothing_in_memory():
    store = TaskStore("k1", ttl=0.0, max_bytes=1_000_000)
    before = count_items(store)
    for _ in range(100):
        end(store, add(store))
    assert count_items(store) > before
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, done.set)  # after those that forget the tasks
    await done.wait()
    assert count_items(store) == before


async def test_the_oldest_results_are_dropped_for_newer_ones_and_say_so(store):
    tasks = [add(store) for _ in range(3)]
    for task in tasks:
        end(store, task, "x" * 400)
    oldest, *others = (task.result for task in tasks)
    assert oldest.is_error
    assert "result was dropped" in oldest.content[0].text
    assert "1,000 bytes" in oldest.content[0].text
    assert all(result.content[0].text == "x" * 400 for result in others)
    assert tasks[0].status == "completed"


async def test_a_result_without_room_is_dropped_at_once_and_no_other_one_for_it(store):
    other, task = add(store), add(store)
    end(store, other, "x" * 400)
    end(store, task, "x" * 2_000)
    assert "result was dropped" in task.result.content[0].text
    assert other.result.content[0].text == "x" * 400


class Large(dict):
    """Arguments that can be seen to be gone."""


async def test_a_task_that_has_ended_holds_nothing_of_its_call_but_where_it_is(store):
    arguments = Large(data="x" * 1_000)
    call, gone = Call("train", arguments), weakref.ref(arguments)
    call.move(CallState.RUNNING)
    task = store.add("ann", call, Elicitations())
    call.move(CallState.CANCELLED)
    ran = call.run_seconds
    store.end(task, Result(is_error=True))
    del arguments, call
    gc.collect()
    assert gone() is None
    assert task.status == "cancelled"
    assert (task.call.task_id, task.call.run_seconds) == (task.id, ran)


async def test_results_take_their_part_of_the_memory_for_originals_until_they_are_forgotten():
    sizes = asyncio.Queue()
    store = TaskStore("k1", ttl=0.05, max_bytes=1_000, reserve=sizes.put_nowait)
    for text in ("x" * 400, "x" * 500, "x" * 300):
        end(store, add(store), text)
    assert [sizes.get_nowait() for _ in range(3)] == [400, 900, 800]
    assert [await sizes.get() for _ in range(2)] == [300, 0]


async def test_the_number_of_ended_tasks_is_bounded():
    store = TaskStore("k1", ttl=3600, max_bytes=1_000, max_ended=2)
    tasks = [add(store) for _ in range(3)]
    for task in tasks:
        end(store, task)
    assert [task for task in tasks if store.find(task.id, task.owner)] == tasks[1:]


async def test_a_question_that_nobody_answers_in_time_is_an_error():
    store = TaskStore("k1", ttl=0.05, max_bytes=1_000)
    elicitations = Elicitations(lambda _: None)
    task = add(store, elicitations=elicitations)
    number, reply = elicitations.ask("Sure?", {}, None)
    question = messages.Ask(id=1, question=number, key="q", message="Sure?", form={})
    task.take_question(question)
    store.limit_question(task, question)
    with pytest.raises(CannotElicit, match="Nobody answered the tool's question within"):
        await asyncio.wrap_future(reply)
    assert task.status == "working"


async def test_the_owner_of_the_most_tasks_loses_its_own_first():
    store = TaskStore("k1", ttl=3600, max_bytes=1_000, max_ended=6)
    mine = [add(store) for _ in range(3)]
    for task in mine:
        end(store, task)
    theirs = [add(store, owner="bob") for _ in range(20)]
    for task in theirs:
        end(store, task)
    left = [task for task in (*mine, *theirs) if store.find(task.id, task.owner)]
    assert left == [*mine, *theirs[-3:]]


async def test_the_owner_of_the_largest_results_loses_its_own_first(store):
    mine = add(store)
    end(store, mine, "x" * 300)
    theirs = [add(store, owner="bob") for _ in range(5)]
    for task in theirs:
        end(store, task, "x" * 250)
    assert mine.result == Result([Text("x" * 300)])
    assert [task.result.is_error for task in theirs] == [True, True, True, False, False]
