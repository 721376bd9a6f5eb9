"""Calls in a copy of the kernel: beside a cell and each other, without a trace, how they end."""

import os
import signal
import sys
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path

import pytest
from live import Link, kernel_with, text_of, until

from mcp_notebook.content import Image, ResourceLink, Result, Text
from mcp_notebook.kernel.fork.fork_runner import KernelOfChild
from mcp_notebook.wire import messages

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system makes no copies")

TOOLS = '''
import asyncio, concurrent.futures, logging, os, pathlib, random, signal, subprocess, sys
import tempfile, threading, time
import _thread
import numpy as np
from IPython.display import Markdown, display
from mcp_notebook import Context, mcp_tool

copy = mcp_tool(read_only=True, run="fork")
log = logging.getLogger("tools")
counter = {"calls": 0}

@copy
def count() -> int:
    """Count this call."""
    global counter
    counter["calls"] += 1
    return counter["calls"]

@copy
def where() -> int:
    """Tell the process."""
    return os.getpid()

@copy
def speak(ctx: Context) -> str:
    """Print, log, display and plot."""
    print("printed")
    print("to stderr", file=sys.stderr)
    log.warning("logged")
    ctx.log("by context")
    display(Markdown("**displayed**"))
    subprocess.run(["echo", "by a program"])
    plt.plot([1, 2])
    return "returned"

@copy
def step(ctx: Context) -> None:
    """Report progress until stopped."""
    for number in ctx.track(range(10**9), message="steps"):
        time.sleep(0.01)

@copy
async def coroutine() -> str:
    """Wait on a loop."""
    print("waits")
    await asyncio.sleep(0.01)
    return "woke up"

@copy
async def tidy_coroutine(path: str) -> None:
    """Clean up when stopped."""
    try:
        pathlib.Path(path).write_text("waits")
        await asyncio.sleep(600)
    finally:
        pathlib.Path(path).write_text("tidy")

@copy
def speak_in_threads() -> str:
    """Print and display in threads that are not the notebook's own."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        threads.submit(print, "printed by a pool").result()
        threads.submit(display, Markdown("**displayed by a pool**")).result()
    has_printed = _thread.allocate_lock()
    has_printed.acquire()
    def speak():
        print("printed by a thread")
        has_printed.release()
    _thread.start_new_thread(speak, ())
    has_printed.acquire()
    return "returned"

@copy
def run_shell() -> str:
    """Run a program as `!` does, and one with code before it."""
    get_ipython().system("echo by the shell")
    return get_ipython().getoutput("echo returned").s

@copy
def prepare_program() -> None:
    """Run a program by C's fork."""
    a = np.ones((500, 500))
    subprocess.run(["true"], preexec_fn=int)

@copy
def rows() -> object:
    """More rows than are shown."""
    return frame

@copy
def fail(how: str) -> str:
    """End in another way."""
    print("before the end")
    if how == "raise":
        raise ValueError("on purpose")
    if how == "exit":
        sys.exit(3)
    if how == "os._exit":
        os._exit(3)
    if how == "closerange":
        os.closerange(3, 1000)
        sum(range(10**15))
    os.kill(os.getpid(), getattr(signal, how))

@copy
def in_c() -> None:
    """Compute in C, for ever."""
    sum(range(10**15))

@copy
def tidy(path: str) -> None:
    """Clean up when stopped."""
    try:
        pathlib.Path(path).write_text(str(os.getpid()))
        while True:
            time.sleep(0.005)
    finally:
        pathlib.Path(path).write_text("tidy")

@copy
def tidy_busily(path: str) -> None:
    """Clean up when stopped, without a pause before."""
    try:
        pathlib.Path(path).write_text(str(os.getpid()))
        while True:
            pass
    finally:
        pathlib.Path(path).write_text("tidy")

@mcp_tool(read_only=True, run="fork", timeout=0.2)
def limited() -> None:
    """Compute in C, with a limit."""
    sum(range(10**15))

@copy
def ask(ctx: Context) -> str:
    """Ask."""
    return str(ctx.can_elicit) + ctx.elicit("Really?").action

@copy
def roll() -> list[float]:
    """Random numbers."""
    return [random.random(), np.random.random()]

@copy
def copies() -> str:
    """Make another copy, which comes back, too."""
    return "the copy's" if os.fork() else "the copy of the copy's"

def start_program(how):
    if how == "of a shell that has ended":
        command = "setsid sleep 600 > /dev/null 2>&1 & echo $!"
        return int(subprocess.run(command, shell=True, capture_output=True).stdout)
    is_apart = how == "in its own session"
    return subprocess.Popen(["sleep", "600"], start_new_session=is_apart).pid

@copy
def leave_program(how: str, path: str, end: str) -> None:
    """Leave a program behind."""
    program = pathlib.Path(path)
    program.with_name("new").write_text(str(start_program(how)))
    program.with_name("new").rename(program)
    if end == "exit":
        os._exit(3)
    if end == "wait":
        sum(range(10**15))

@copy
def read_on() -> str:
    """Read from a file that a cell has opened."""
    return opened.read(3).decode()

@copy
def wait_for(path: str) -> str:
    """Wait for a file."""
    while not pathlib.Path(path).exists():
        time.sleep(0.005)
    return "it came"

@copy
def lock_and_log() -> str:
    """Use a lock that the kernel's thread holds, of logging."""
    logging.getLogger("another").warning("logged")
    logging.getLogger(f"new {os.getpid()}")
    print("printed")
    return "done"
'''


kernel = kernel_with(TOOLS, kernel="hasty_kernel")


@pytest.fixture(scope="module")
def table(kernel):
    kernel.ok("import pandas as pd\nframe = pd.DataFrame({'x': np.arange(5000)})")


@pytest.fixture(scope="module")
def pyplot(kernel):
    kernel.ok("import matplotlib.pyplot as plt")


def count_descriptors(kernel):
    return len(os.listdir(f"/proc/{kernel.pid}/fd"))  # noqa: PTH208


def list_children(kernel):
    """Return the processes that are the kernel's, zombies included."""
    found = []
    for task in Path(f"/proc/{kernel.pid}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            found += map(int, (task / "children").read_text().split())
    return found


def is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return not status.rpartition(b") ")[2].startswith((b"Z", b"X"))


@pytest.mark.usefixtures("table")
def test_a_call_runs_in_another_process_on_the_kernels_data(kernel, link):
    pid = int(text_of(link.call("where")))
    assert pid != kernel.pid
    assert not is_alive(pid)
    kernel.ok("frame = frame.head(3)")
    assert "3 rows" in text_of(link.call("rows")) or "| 2" in text_of(link.call("rows"))
    kernel.ok("frame = pd.DataFrame({'x': np.arange(5000)})")


@pytest.mark.smoke
def test_a_call_runs_while_a_cell_runs(kernel, link):
    with kernel.busy():
        assert text_of(link.call("count")) == "1"


def test_what_a_call_changes_is_not_seen_by_the_kernel_or_the_next_call(kernel, link):
    assert [text_of(link.call("count")) for _ in range(3)] == ["1"] * 3
    assert kernel.ok("print(counter)").stdout == "{'calls': 0}\n"


@pytest.mark.usefixtures("pyplot")
def test_prints_displays_figures_and_programs_are_in_the_result_and_not_in_a_cell(kernel, link):
    result = link.call("speak")
    text = text_of(result)
    for part in ("printed", "to stderr", "**displayed**", "by a program", "returned"):
        assert part in text
    assert any(isinstance(block, Image) for block in result.content)
    shown = kernel.ok("print('mine')")
    assert (shown.stdout, shown.stderr) == ("mine\n", "")
    assert kernel.ok("print(plt.get_fignums())").stdout == "[]\n"


def test_what_threads_of_libraries_print_and_display_is_not_in_a_cell(kernel, link, tmp_path):
    release = tmp_path / "release"
    request = kernel.start(
        "print('mine', end='')\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.01)"
    )
    text = text_of(link.call("speak_in_threads"))
    for part in ("printed by a pool", "**displayed by a pool**", "printed by a thread"):
        assert part in text
    release.touch()
    shown = kernel.finish(request)
    assert (shown.stdout, shown.displays) == ("mine", [])


def test_progress_comes_while_the_call_runs(link):
    call = link.start("step", progress=True)
    link.receive_until(lambda message: (getattr(message, "progress", None) or 0) > 1)
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    link.result()


@pytest.mark.usefixtures("table")
def test_the_whole_of_a_table_can_be_read_from_the_kernel(link):
    [address, *_] = [
        block.uri for block in link.call("rows").content if isinstance(block, ResourceLink)
    ]
    link.send(messages.ReadResource(id=1, uri=address))
    contents = link.receive_until(lambda message: not isinstance(message, Result))[-1]
    assert isinstance(contents, messages.Contents)
    assert (contents.error, contents.is_text) == (None, True)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raise", "ValueError: on purpose"),
        ("exit", "SystemExit"),
        ("os._exit", "'fail' ended before its function did, with exit status 3"),
        (
            "SIGSEGV",
            "'fail' was killed by SIGSEGV (a bug in C code). The kernel itself is not affected.",
        ),
        ("SIGKILL", "'fail' was killed by SIGKILL (out of memory, perhaps)."),
    ],
)
def test_a_call_that_ends_otherwise_says_how(kernel, link, how, said):
    result = link.call("fail", how=how)
    assert result.is_error
    assert said in text_of(result)
    assert list_children(kernel) == []


def test_a_call_in_c_is_gone_soon_after_its_cancel(kernel, link):
    call = link.start("in_c")
    until(lambda: list_children(kernel))
    [child] = list_children(kernel)
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted." in text_of(link.result())
    until(lambda: not is_alive(child))
    until(lambda: list_children(kernel) == [])


@pytest.fixture
def unhurried(kernel):
    """However slow the machine is, code that is stopped may end by itself."""
    module = "mcp_notebook.kernel.fork.forked_child"
    kernel.set_constants(module, GRACE=60)
    yield
    kernel.set_constants(module, GRACE=0.1)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("tool", ["tidy", "tidy_busily"])
def test_code_that_is_stopped_cleans_up(kernel, link, tmp_path, tool):
    path = tmp_path / "state"
    call = link.start(tool, path=str(path))
    until(lambda: path.exists() and path.read_text())
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    link.result()
    until(lambda: path.read_text() == "tidy")
    until(lambda: list_children(kernel) == [])


@pytest.mark.usefixtures("unhurried")
def test_a_coroutine_that_is_stopped_cleans_up(kernel, link, tmp_path):
    path = tmp_path / "state"
    call = link.start("tidy_coroutine", path=str(path))
    until(lambda: path.exists() and path.read_text())
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    assert "No longer wanted." in text_of(link.result())
    until(lambda: list_children(kernel) == [])
    assert path.read_text() == "tidy"


def test_interrupting_a_cell_stops_no_call_in_a_copy(kernel, link, tmp_path):
    path = tmp_path / "state"
    call = link.start("tidy", path=str(path))
    until(lambda: path.exists() and path.read_text())
    request = kernel.start("print('began', flush=True)\nimport time; time.sleep(60)")
    kernel.wait_for("stream")
    os.killpg(os.getpgid(kernel.pid), signal.SIGINT) if os.getpgid(
        kernel.pid
    ) == kernel.pid else os.kill(kernel.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in kernel.finish(request).error
    assert is_alive(int(path.read_text()))
    link.send(messages.Cancel(id=call, reason="No longer wanted."))
    link.result()
    until(lambda: list_children(kernel) == [])


def test_a_question_is_refused_with_the_reason(link):
    text = text_of(link.call("ask"))
    assert "cannot ask the user: it runs in a copy of the kernel" in text


def test_each_call_has_random_numbers_of_its_own(link):
    first, second = (text_of(link.call("roll")) for _ in range(2))
    assert not set(first.strip("[]").split(", ")) & set(second.strip("[]").split(", "))


def test_a_copy_of_the_copy_answers_nobody_and_is_ended(kernel, link):
    assert text_of(link.call("copies")) == "the copy's"
    assert text_of(link.call("count")) == "1"


@pytest.mark.parametrize("end", ["return", "exit", "wait"])
@pytest.mark.parametrize("how", ["of the copy", "in its own session", "of a shell that has ended"])
def test_a_program_that_the_function_leaves_behind_ends_with_the_call(link, tmp_path, how, end):
    path = tmp_path / "program"
    call = link.start("leave_program", how=how, path=str(path), end=end)
    until(path.exists)
    if end == "wait":
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
    link.result()
    until(lambda: not is_alive(int(path.read_text())))


def test_a_copy_that_closes_its_connection_is_not_said_to_be_out_of_memory(kernel, link):
    text = text_of(link.call("fail", how="closerange"))
    assert "closed its connection to the kernel (`os.closerange`, perhaps)" in text
    assert "memory" not in text
    assert list_children(kernel) == []


def test_where_a_call_reads_in_a_file_is_not_where_the_kernel_reads_on(kernel, link, tmp_path):
    path = tmp_path / "data"
    path.write_text("abcdef")
    kernel.ok(f"opened = open({str(path)!r}, 'rb', buffering=0)\nopened.read(1)")
    assert [text_of(link.call("read_on")) for _ in range(2)] == ["bcd", "bcd"]
    assert kernel.ok("print(opened.read())").stdout == "b'bcdef'\n"


def test_a_call_keeps_no_pipe_of_a_cell_open(kernel, link, tmp_path):
    release = tmp_path / "release"
    kernel.ok("reader = subprocess.Popen(['cat'], stdin=subprocess.PIPE)")
    call = link.start("wait_for", path=str(release))
    until(lambda: len(list_children(kernel)) == 2)
    # It ends when nobody can write to it any more, and the call runs until it has.
    kernel.ok(f"reader.communicate(b'')\npathlib.Path({str(release)!r}).touch()")
    assert text_of(link.result()) == "it came"
    assert call


class OddText(str):
    __slots__ = ()

    def __reduce__(self):
        raise RuntimeError("not to be sent")


def test_a_result_that_cannot_be_sent_is_an_error():
    ours, theirs = Pipe()
    with ours, theirs:
        odd = Result([Text(OddText("a"))])
        KernelOfChild(theirs).send_result(odd, is_private=False, has_run=True)
        _kind, result, *_facts = ours.recv()
    assert result.is_error
    assert text_of(result) == (
        "The result cannot be sent from the copy of the kernel: RuntimeError: not to be sent."
    )


HOLD_LOCKS = """
go, held = threading.Event(), threading.Event()
def hold():
    with logging._lock, logging.lastResort.lock:
        held.set()
        go.wait(60)
holder = threading.Thread(target=hold)
holder.start()
held.wait()
@mcp_tool(read_only=True, run='thread')
def let_go() -> str:
    'Let the other thread go on.'
    go.set()
    return 'gone'
"""


def test_other_calls_run_while_a_copy_waits_for_a_lock_of_another_thread(kernel, link):
    kernel.ok(HOLD_LOCKS)
    try:
        with Link(link.record) as other:
            link.start("lock_and_log")
            until(lambda: "running" in kernel.ok("%mcp status").text)
            assert text_of(other.call("let_go")) == "gone"
        assert "done" in text_of(link.result())
    finally:
        kernel.ok("go.set()\nholder.join()\ndel let_go")


HOLD_A_LOCK = """
lock = threading.Lock()
lock.acquire()
pool = concurrent.futures.ThreadPoolExecutor()
pool.submit(int).result()
@copy
def wait(how: str) -> str:
    'Wait for a thread of the kernel, or a while.'
    if how == "lock":
        lock.acquire()
    if how == "pool":
        pool.submit(int).result()
    if how == "its own thread":
        release = threading.Timer(0.3, lock.release)
        release.start()
        lock.acquire()
    time.sleep(0.3)
    return "waited"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process waits for")
def test_a_call_whose_library_waits_for_the_end_of_a_thread_is_ended(kernel, link):
    kernel.ok("(np.ones((500, 500)) @ np.ones((500, 500))).sum()")  # now OpenBLAS has threads
    text = text_of(link.call("prepare_program"))
    assert "deadlocked: it waited for a thread that only the kernel has" in text


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process waits for")
@pytest.mark.parametrize("how", ["lock", "pool"])
def test_a_call_that_waits_for_a_thread_of_the_kernel_is_ended(kernel, link, how):
    kernel.ok(HOLD_A_LOCK)
    text = text_of(link.call("wait", how=how))
    assert "deadlocked: it waited for a thread that only the kernel has" in text


COMPUTE_IN_SQL = """
import sqlite3
from_start = [bytearray(3000 + number % 2000) for number in range(5000)]
database = sqlite3.connect(":memory:")
query = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)"
    "SELECT sum(length(printf('%.*c', 3000 + i % 2000, 'x') || 'y')) FROM n"
)
@mcp_tool(read_only=True, run='fork', timeout=20)
def allocate() -> int:
    'Let go of memory of the main thread, and take some.'
    from_start.clear()
    return len([bytearray(3000 + number) for number in range(200)])
"""


OFTEN = pytest.mark.parametrize("times", [4, pytest.param(20, marks=pytest.mark.slow)])


@pytest.mark.slow
@OFTEN
def test_a_copy_is_made_while_a_cell_allocates_memory_in_c(kernel, link, times):
    kernel.ok(COMPUTE_IN_SQL)
    cell = kernel.start(
        "print('began', flush=True)\nwhile True: database.execute(query).fetchall()"
    )
    try:
        kernel.wait_for("stream")
        for _ in range(times):
            assert text_of(link.call("allocate")) == "200"
    finally:
        os.kill(kernel.pid, signal.SIGINT)
        kernel.finish(cell)
        kernel.ok("del allocate")


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        20,
        pytest.param(100, marks=pytest.mark.slow),
        pytest.param(1000, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)]),
    ],
)
def test_many_calls_leave_no_process_and_no_descriptor(kernel, link, number):
    link.call("count")
    before = count_descriptors(kernel)
    for _ in range(number):
        assert text_of(link.call("count")) == "1"
    assert list_children(kernel) == []
    until(lambda: count_descriptors(kernel) <= before)


MULTIPLY = """
a = np.random.rand(500, 500)
stop, rounds = threading.Event(), 0
def multiply():
    global rounds
    while not stop.is_set():
        a @ a
        rounds += 1
multiplies = threading.Thread(target=multiply)
multiplies.start()
@copy
def product() -> bool:
    '''Multiply matrices.'''
    return bool((a @ a).sum() > 0)
"""


@OFTEN
def test_a_copy_is_made_while_a_thread_multiplies_matrices(kernel, link, times):
    kernel.ok(MULTIPLY)
    try:
        for _ in range(times):
            assert text_of(link.call("product")) == "true"
        assert kernel.ok("before = rounds\nwhile rounds == before: time.sleep(0.01)").error is None
    finally:
        kernel.ok("stop.set()\nmultiplies.join()\ndel product")


def test_a_call_in_a_cell_runs_in_a_copy_too_and_can_be_interrupted(kernel):
    kernel.ok("%mcp call count")
    assert kernel.ok("print(counter)").stdout == "{'calls': 0}\n"
    request = kernel.start("print('began', flush=True)\n%mcp call in_c")
    until(lambda: list_children(kernel))
    os.kill(kernel.pid, signal.SIGINT)
    assert "interrupted the call" in kernel.finish(request).text
    until(lambda: list_children(kernel) == [])


UNNOTICED = """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # another thread takes it
try:
    get_ipython().run_line_magic("mcp", "call in_c")
finally:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
"""


@pytest.mark.timeout(30)
def test_an_interrupt_that_does_not_end_the_wait_for_a_copy_stops_the_call(kernel):
    # As one does that comes just before the main thread begins to wait.
    request = kernel.start(UNNOTICED)
    until(lambda: list_children(kernel))
    os.kill(kernel.pid, signal.SIGINT)
    assert "interrupted the call" in kernel.finish(request).text
    assert list_children(kernel) == []


INTERRUPT_AT_START = """
start_thread, may_begin = threading.Thread.start, threading.Event()

def start_late(thread):
    threading.Thread.start = start_thread
    run = thread.run
    thread.run = lambda: (may_begin.wait(), run())
    start_thread(thread)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread.start = start_late
%mcp call in_c
may_begin.set()
"""


def test_an_interrupt_that_comes_before_the_copy_is_made_stops_the_call(kernel):
    assert "interrupted the call" in kernel.run(INTERRUPT_AT_START).text
    assert kernel.ok("print('free')").stdout == "free\n"
    assert list_children(kernel) == []


def test_a_library_that_does_not_work_in_a_copy_is_named(kernel, link):
    kernel.ok("import types; sys.modules['cupy'] = types.ModuleType('cupy')")
    try:
        text = text_of(link.call("count"))
    finally:
        kernel.ok("del sys.modules['cupy']")
    assert "cupy uses the GPU" in text
    assert "--run thread" in text


def test_no_more_copies_run_at_once_than_there_are_processors(kernel, link, tmp_path):
    most = max(os.cpu_count(), 2)
    calls = [link.start("tidy", path=str(tmp_path / f"{number}")) for number in range(most + 2)]
    until(lambda: len(list(tmp_path.iterdir())) == most)
    assert len(list_children(kernel)) == most
    for call in reversed(calls):
        link.send(messages.Cancel(id=call, reason="No longer wanted."))
        link.result()
    until(lambda: list_children(kernel) == [])


COUNT_BUILDS = """
from mcp_notebook.kernel.schemas.output import output_schema
from mcp_notebook.kernel.schemas.parameters import signature_to_schema

def write_pid(function):
    def build(*args, **options):
        with open(builds, "a") as file:
            print(os.getpid(), file=file)
        return function(*args, **options)
    return build

signature_to_schema.build_validator = write_pid(signature_to_schema.build_validator)
output_schema._make_comparison = write_pid(output_schema._make_comparison)
"""
BUILDS = '''
@copy
def built(numbers: list[int], name: str = "x") -> dict[str, float]:
    """Use what is built from type hints."""
    return {name: sum(numbers)}
'''


def test_what_calls_need_of_their_tool_is_built_once_and_in_the_kernel(kernel, link, tmp_path):
    builds = tmp_path / "builds"
    builds.touch()
    kernel.ok(BUILDS)
    kernel.ok(f"builds = {str(builds)!r}" + COUNT_BUILDS)
    try:
        kernel.ok(BUILDS)  # its schema was stored: what validates is built at the first call
        for _ in range(3):
            assert not link.call("built", numbers=[1, 2]).is_error
    finally:
        kernel.ok(
            "for module, name in [(signature_to_schema, 'build_validator'), "
            "(output_schema, '_make_comparison')]:\n"
            "    function = getattr(module, name)\n"
            "    setattr(module, name, function.__closure__[0].cell_contents)\n"
            "del built"
        )
    pids = builds.read_text().split()
    assert set(pids) == {str(kernel.pid)}
    assert len(pids) <= 2


def test_a_time_limit_ends_a_call_in_c(kernel, link):
    assert "'limited' was stopped: it ran longer than 0.2 s" in text_of(link.call("limited"))
    until(lambda: list_children(kernel) == [])
