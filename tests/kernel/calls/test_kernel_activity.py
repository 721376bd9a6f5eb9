"""What a frontend sees on iopub of calls: a kernel in use is busy or idle as it is."""

import contextlib
import time

import pytest
from live import TIMEOUT, Link, live_kernel, record_of, text_of

EVERY = 0.4
"""Seconds, in place of one."""
TOOLS = '''%%mcp_tool
import asyncio, pathlib, time

def add(a: int, b: int) -> int:
    """Add."""
    return a + b

def on_main(release: str) -> str:
    """Run until a file is there."""
    while not pathlib.Path(release).exists():
        time.sleep(0.01)
    return "released"

async def on_loop(release: str) -> str:
    """Run until a file is there."""
    while not pathlib.Path(release).exists():
        await asyncio.sleep(0.01)
    return "released"

def unload(release: str) -> None:
    """Run until a file is there, and unload the extension."""
    on_main(release)
    get_ipython().run_line_magic("unload_ext", "mcp_notebook")
'''
IN_THREAD = '''%%mcp_tool --run thread
def in_thread(release: str) -> str:
    """Run until a file is there."""
    return on_main(release)

def stop_looking() -> None:
    """Cancel the next look: what is said from now on, an end says."""
    def cancel():
        activity._timer.cancel()
        activity._timer = None
    activity = get_ipython().kernel._publish_status.__self__
    activity._loop.call_soon_threadsafe(cancel)
'''
CELL = """
print("began", flush=True)
while not pathlib.Path({!r}).exists():
    await asyncio.sleep(0.01)
"""
OURS = "mcp_call"


@pytest.fixture(scope="module")
def kernel(shared_kernel):
    be_hasty(shared_kernel)
    shared_kernel.ok(TOOLS)
    shared_kernel.ok(IN_THREAD)
    return shared_kernel


def be_hasty(kernel, every=EVERY):
    kernel.set_constants("mcp_notebook.kernel.calls.kernel_activity", EVERY=every)


@pytest.fixture
def release(kernel):
    """The file that a long call waits for."""
    path = kernel.home / "release"
    path.unlink(missing_ok=True)
    yield path
    path.touch()  # also when the test has failed


def status_of(message):
    """Return whom a status answers and what it is, None for any other message."""
    if message["msg_type"] != "status":
        return None
    return message["parent_header"]["msg_type"], message["content"]["execution_state"]


def statuses_until(kernel, last):
    """Return all statuses up to this one."""
    statuses = []
    while last not in statuses:
        status = status_of(kernel.client.get_iopub_msg(timeout=TIMEOUT))
        if status is not None:
            statuses.append(status)
    return statuses


def statuses_of_a_cell(kernel):
    """Run a cell, and return the statuses that came before and in it."""
    kernel.start("1")
    return statuses_until(kernel, ("execute_request", "idle"))


@contextlib.contextmanager
def cell_that_waits(kernel):
    """Keep an asynchronous cell running, beside which calls run on the kernel's loop."""
    path = kernel.home / "end-of-cell"
    kernel.start(CELL.format(str(path)))
    while kernel.client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "stream":
        pass
    try:
        yield
    finally:
        path.touch()
        statuses_until(kernel, ("execute_request", "idle"))
        path.unlink()


@pytest.mark.parametrize("tool", ["on_main", "on_loop", "in_thread"])
def test_a_long_call_shows_the_kernel_busy_until_its_end(kernel, link, release, tool):
    link.start(tool, release=str(release))
    statuses_until(kernel, (OURS, "busy"))
    link.call("stop_looking")
    release.touch()
    assert text_of(link.result()) == "released"
    assert set(statuses_until(kernel, (OURS, "idle"))[:-1]) <= {(OURS, "busy")}


def test_a_call_that_runs_on_is_told_from_time_to_time(kernel, link, release):
    link.start("on_main", release=str(release))
    for _ in range(3):
        statuses_until(kernel, (OURS, "busy"))
    release.touch()
    link.result()


@pytest.fixture
def every(kernel):
    """As long as it is for users: on a busy machine, no call of the test may take longer."""
    be_hasty(kernel, 1.0)
    yield 1.0
    be_hasty(kernel)


@pytest.mark.slow
def test_short_calls_are_told_at_most_at_the_rate_and_never_as_busy(kernel, link, every):
    statuses_of_a_cell(kernel)
    began = time.monotonic()
    while time.monotonic() - began < 2.5 * every:
        for _ in range(20):
            assert text_of(link.call("add", a=1, b=2)) == "3"
    took = time.monotonic() - began
    statuses = statuses_of_a_cell(kernel)
    ours = [status for status in statuses if status[0] == OURS]
    assert set(ours) == {(OURS, "idle")}
    assert 2 <= len(ours) <= took / every + 2


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["on_main", "on_loop", "in_thread"])
def test_the_end_of_a_call_does_not_end_the_cell_that_runs(kernel, link, release, tool):
    with cell_that_waits(kernel):
        link.start(tool, release=str(release))
        for _ in range(2):  # at its arrival, and as a long one
            assert statuses_until(kernel, (OURS, "busy")) == [(OURS, "busy")]
        release.touch()
        link.result()
        link.call("add", a=1, b=2)
        seen = [status_of(kernel.client.get_iopub_msg(timeout=TIMEOUT)) for _ in range(2)]
        assert set(seen) == {(OURS, "busy")}
    assert statuses_of_a_cell(kernel)[-1] == ("execute_request", "idle")


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["on_loop", "in_thread"])
def test_the_end_of_a_cell_does_not_end_the_call_that_runs(kernel, link, release, tool):
    link.start(tool, release=str(release))
    statuses_until(kernel, (OURS, "busy"))
    link.call("stop_looking")
    statuses_of_a_cell(kernel)
    assert statuses_until(kernel, (OURS, "busy")) == [(OURS, "busy")]
    release.touch()
    link.result()
    statuses_until(kernel, (OURS, "idle"))


def test_clients_that_wait_for_their_own_cell_pass_over_our_statuses(kernel, link, release):
    link.start("in_thread", release=str(release))
    statuses_until(kernel, (OURS, "busy"))
    reply = kernel.client.execute_interactive("1", timeout=TIMEOUT, output_hook=lambda _: None)
    assert reply["content"]["status"] == "ok"
    release.touch()
    link.result()


@pytest.mark.slow
def test_a_tool_that_unloads_us_leaves_an_idle_kernel_and_no_hook(home):
    release = home / "release"
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook\nimport pathlib, time")
        be_hasty(kernel)
        kernel.ok(TOOLS)
        with Link(record_of(kernel)) as link:
            link.start("unload", release=str(release))
            statuses_until(kernel, (OURS, "busy"))
            release.touch()
            assert statuses_until(kernel, (OURS, "idle"))[-1] == (OURS, "idle")
        assert kernel.ok("print('_publish_status' in vars(get_ipython().kernel))").stdout == (
            "False\n"
        )
