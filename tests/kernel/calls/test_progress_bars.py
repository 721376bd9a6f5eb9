"""Progress bars of tqdm and rich inside real calls, and the rules for several of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live import Link, live_kernel, record_of, text_of

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.progress_bars import ProgressBars
from mcp_notebook.wire import messages

TOOLS = """
import time
from mcp_notebook import mcp_tool
from tqdm import tqdm as text_tqdm
from tqdm.auto import tqdm as auto_tqdm
from tqdm.notebook import tqdm as notebook_tqdm
from rich.progress import Progress as RichProgress, track

kinds = {"text": text_tqdm, "auto": auto_tqdm, "notebook": notebook_tqdm}
# In place of a tenth of a second, between two looks at a bar.
often = {"mininterval": 0.02}

@mcp_tool
def loop(kind: str, n: int = 6) -> str:
    for _ in kinds[kind](range(n), desc="rows", **often):
        time.sleep(0.03)
    return "done"

@mcp_tool
def by_hand(kind: str) -> str:
    with kinds[kind](total=6, **often) as bar:
        for _ in range(3):
            time.sleep(0.03)
            bar.update(2)
        bar.reset(total=4)
    return "done"

@mcp_tool
def nested() -> str:
    for _ in auto_tqdm(range(3), desc="outer", **often):
        for _ in text_tqdm(range(20), desc="inner", leave=False, **often):
            time.sleep(0.004)
    return "done"

@mcp_tool
def one_after_the_other() -> str:
    for name in ("first", "second"):
        for _ in text_tqdm(range(3), desc=name, **often):
            time.sleep(0.03)
    return "done"

@mcp_tool
def rich_track() -> str:
    for _ in track(range(6), description="rows", update_period=0.02):
        time.sleep(0.03)
    return "done"

@mcp_tool
def rich_tasks() -> str:
    with RichProgress() as progress:
        outer, inner = progress.add_task("outer", total=4), progress.add_task("inner", total=100)
        for _ in range(4):
            for step in range(100):
                progress.update(inner, completed=step)
            time.sleep(0.03)
            progress.advance(outer)
    return "done"

@mcp_tool
def talks_too() -> str:
    for item in auto_tqdm(range(3)):
        print("item", item)
        text_tqdm.write("written")
    return "done"
"""


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    for library in ("tqdm", "rich", "ipywidgets"):
        pytest.importorskip(library)
    be_hasty(shared_kernel)
    shared_kernel.ok(TOOLS)
    return shared_kernel


def be_hasty(kernel):
    """Have the kernel look at bars and report them more often than each tenth of a second."""
    package = "mcp_notebook.kernel"
    kernel.set_constants(f"{package}.calls.progress_bars", _INTERVAL=0.02)
    kernel.set_constants(f"{package}.link.call_notices", PROGRESS_INTERVAL=0.02)


def run(kernel, tool, **arguments):
    """Return the progress and the result of a call."""
    progress = []
    with Link(record_of(kernel)) as link:
        link.start(tool, progress=True, **arguments)
        while not isinstance(message := link.receive(), Result):
            progress += [message] if isinstance(message, messages.Progress) else []
    return progress, text_of(message)


@pytest.mark.parametrize("kind", ["text", "auto", "notebook"])
def test_a_tqdm_loop_is_the_progress_of_its_call_and_draws_nothing(kernel, kind):
    progress, text = run(kernel, "loop", kind=kind)
    assert text == "done"
    assert {item.total for item in progress} == {6}
    done = [item.progress for item in progress]
    assert done == sorted(done)
    assert len(set(done)) > 2
    assert progress[-1].message.startswith("rows ")
    assert f"{done[-1]:g}/6" in progress[-1].message


@pytest.mark.parametrize("kind", ["text", "auto", "notebook"])
def test_a_bar_that_is_moved_by_hand_and_reset_is_heard(kernel, kind):
    progress, text = run(kernel, "by_hand", kind=kind)
    assert text == "done"
    assert {2.0, 4.0} & {item.progress for item in progress}


def test_of_nested_bars_the_outermost_counts(kernel):
    progress, text = run(kernel, "nested")
    assert text == "done"
    assert {item.total for item in progress} == {3}
    assert all(item.message.startswith("outer") for item in progress)


def test_bars_that_follow_each_other_add_up(kernel):
    progress, _ = run(kernel, "one_after_the_other")
    done = [item.progress for item in progress]
    assert done == sorted(done)
    assert progress[-1].total == 6
    assert progress[-1].progress > 3


def test_richs_track_is_the_progress_of_its_call(kernel):
    progress, text = run(kernel, "rich_track")
    assert text == "done"
    assert {item.total for item in progress} == {6}
    assert len(progress) > 2


def test_prints_beside_a_bar_are_in_the_result(kernel):
    _, text = run(kernel, "talks_too")
    assert text.splitlines() == [
        "item 0", "written", "item 1", "written", "item 2", "written", "done"
    ]  # fmt: skip


def test_in_a_cell_bars_look_as_ever(kernel):
    run(kernel, "loop", kind="text", n=1)
    output = kernel.ok("for _ in text_tqdm(range(3), desc='mine'): pass")
    assert "mine: 100%" in output.stderr
    output = kernel.ok("for _ in notebook_tqdm(range(3), desc='mine'): pass")
    assert any("application/vnd.jupyter.widget-view+json" in data for data in output.displays)


def test_nothing_is_left_of_the_patches_when_the_extension_is_unloaded(kernel):
    run(kernel, "loop", kind="text", n=1)
    kernel.ok("%unload_ext mcp_notebook")
    left = kernel.ok(
        "import rich.progress, tqdm.std, tqdm.notebook\n"
        "print([f.__module__ for f in (tqdm.std.tqdm.__init__, tqdm.notebook.tqdm.__init__, "
        "tqdm.notebook.tqdm.reset, rich.progress.Progress.start, rich.progress.Progress.update, "
        "rich.progress.Progress.advance, rich.progress.Progress.stop)])"
    )
    assert "mcp_notebook" not in left.stdout
    kernel.ok("%load_ext mcp_notebook")
    kernel.ok(TOOLS)


def test_a_bar_of_a_library_that_the_tool_itself_imports_first_is_heard(home):
    pytest.importorskip("tqdm")
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(
            "%%mcp_tool\ndef late() -> str:\n    'Late.'\n    import time\n"
            "    from tqdm import tqdm\n    for _ in tqdm(range(3)): time.sleep(0.11)\n"
            "    return 'done'"
        )
        progress, text = run(kernel, "late")
        assert text == "done"
        assert {item.total for item in progress} == {3}


class Bar:
    """Anything that can be told apart."""


moves = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10), st.booleans()), min_size=1, max_size=30
)


@given(moves)
def test_whatever_bars_do_one_at_a_time_counts(moved):
    updates = []
    bars, open_bars = ProgressBars(updates.append), [Bar() for _ in range(3)]
    for which, done, closed in moved:
        bars.update(open_bars[which], done, 10, f"{which}", closed=closed)
    counted = {update.message for update in updates}
    assert all(0 <= update.done <= update.total for update in updates)
    if not any(closed or done == 10 for _, done, closed in moved):
        assert counted == {str(moved[0][0])}
