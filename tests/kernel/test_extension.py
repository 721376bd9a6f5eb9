"""%load_ext and what it leaves behind."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked_command import KERNEL, list_words
from live import Link, kernel_env, live_kernel, record_of, text_of, tools_of

from mcp_notebook.wire import messages

LEFT_BEHIND = """
import json, os, sys, threading
ip = get_ipython()
callbacks = [c for found in ip.events.callbacks.values() for c in found]
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
home = os.path.expanduser("~/.mcp-notebook")
print(json.dumps({
    "threads": [t.name for t in threading.enumerate() if "mcp" in t.name],
    "magics": [m for kind in ip.magics_manager.magics.values() for m in kind if "mcp" in m],
    "events": sum("mcp_notebook" in str(getattr(c, "__module__", "")) for c in callbacks),
    "sockets": sum("socket" in os.readlink(link) for link in links if os.path.lexists(link)),
    "files": sorted(
        f for at, _, files in os.walk(home) for f in files
        if os.path.basename(at) != "schemas" and not f.endswith(".gone")  # notes for later callers
    ),
    "completers": [m.matcher_identifier for m in ip.Completer.custom_matchers],
    "streams": [type(vars(type(s)).get("write")).__name__ for s in (sys.stdout, sys.stderr)],
    "builtins": ip.builtin_trap._nested_level,
    "asking": [f.__qualname__ for f in (ip.kernel._sys_raw_input, ip.kernel._save_getpass)],
    "configurables": sum("mcp" in type(c).__module__ for c in ip.configurables),
}))
"""


def left_behind(kernel):
    return json.loads(kernel.ok(LEFT_BEHIND).stdout)


@pytest.fixture(scope="module")
def one_kernel(module_home):
    """The kernel that most tests share, one after the other."""
    with live_kernel(module_home, notebook=str(module_home / "sales.ipynb")) as kernel:
        yield kernel


@pytest.fixture
def bare(one_kernel):
    """A kernel without the extension and without variables."""
    yield one_kernel
    one_kernel.ok("import os; os.environ.pop('MCP_NOTEBOOK_LIMITS', None)")
    one_kernel.ok("%unload_ext mcp_notebook\n%reset_selective -f .")


@pytest.fixture
def kernel(bare):
    """A kernel with the extension, freshly loaded, and without tools and variables."""
    bare.ok("%load_ext mcp_notebook")
    return bare


@pytest.fixture
def own_kernel(home):
    """A kernel with the extension that the test may end."""
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        yield kernel


@pytest.mark.smoke
def test_unloading_leaves_no_thread_socket_hook_or_record_behind(home):
    with live_kernel(home) as kernel:
        kernel.ok("import asyncio, os, threading")
        before = left_behind(kernel)
        kernel.ok("%load_ext mcp_notebook")
        during = left_behind(kernel)
        assert during["threads"] == ["mcp-notebook-endpoint"]
        assert len(during["files"]) == 2  # record and socket
        kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
        with Link(record_of(kernel)) as link:
            assert text_of(link.call("one")) == "1"
        kernel.ok("%unload_ext mcp_notebook")
        assert left_behind(kernel) == before


def test_loading_twice_changes_nothing(kernel):
    kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
    before = left_behind(kernel)
    kernel.ok("%load_ext mcp_notebook\n%load_ext mcp_notebook")
    kernel.ok("import mcp_notebook\nmcp_notebook.load_ipython_extension(get_ipython())")
    assert left_behind(kernel) == before
    with Link(record_of(kernel)) as link:
        assert [tool.name for tool in link.welcome.tools] == ["one"]


def test_loading_in_the_home_folder_says_once_what_is_shared(bare):
    said = bare.ok("%load_ext mcp_notebook").stdout
    assert "is your home folder: a tool that returns a `Path` can send" in said
    assert "home folder" not in bare.ok("%load_ext mcp_notebook\n%reload_ext mcp_notebook").text
    bare.ok("%unload_ext mcp_notebook\nimport os; os.mkdir('work'); os.chdir('work')")
    try:
        assert bare.ok("%load_ext mcp_notebook").text.strip() == ""
    finally:
        bare.ok("os.chdir('..'); os.rmdir('work')")


def test_reloading_gives_a_fresh_extension_and_one_of_everything(kernel):
    before = left_behind(kernel)
    record = record_of(kernel)
    kernel.ok("%reload_ext mcp_notebook\n%reload_ext mcp_notebook")
    after = left_behind(kernel)
    assert {**after, "files": 0} == {**before, "files": 0}
    assert len(after["files"]) == 2
    assert record_of(kernel).id != record.id
    kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
    with Link(record_of(kernel)) as link:
        assert text_of(link.call("one")) == "1"


@pytest.mark.smoke
def test_reloading_keeps_the_tools_in_order_and_as_they_were(kernel):
    kernel.ok(
        "from mcp_notebook import Tool, mcp_tool, registry\n@mcp_tool\ndef a(): 'A.'\n"
        "@mcp_tool\ndef gone(): 'G.'\nregistry.add(Tool(name='data', handler=lambda: 1))"
    )
    kernel.ok("%%mcp_tool --title 'B b'\ndef b(n: int) -> int:\n    'B.'\n    return n")
    kernel.ok("registry.remove('gone')\nregistry.update('a', priority=2)\nimport statistics")
    kernel.ok("%mcp_tool statistics.mean")
    with Link(record_of(kernel)) as link:
        before = link.welcome.tools
    assert kernel.ok("%load_ext mcp_notebook").stdout.endswith("%reload_ext mcp_notebook\n")
    kernel.ok("%reload_ext mcp_notebook")
    with Link(record_of(kernel)) as link:
        assert link.welcome.tools == before
        assert text_of(link.call("b", n=3)) == "3"
    kernel.ok("def b(): 'New.'")  # and they still follow
    with Link(record_of(kernel)) as link:
        assert next(tool for tool in link.welcome.tools if tool.name == "b").description == "New."


def test_a_reload_that_fails_for_a_setting_loses_no_tools(kernel):
    kernel.ok("%%mcp_tool\ndef one(): 'One.'")
    output = kernel.run("%env MCP_NOTEBOOK_LIMITS=abc\n%reload_ext mcp_notebook")
    assert "MCP_NOTEBOOK_LIMITS" in output.error
    kernel.ok("%env MCP_NOTEBOOK_LIMITS=normal\n%reload_ext mcp_notebook")
    with Link(record_of(kernel)) as link:
        assert [tool.name for tool in link.welcome.tools] == ["one"]


def test_an_unload_forgets_the_tools(kernel):
    kernel.ok("%%mcp_tool\ndef one(): 'One.'")
    kernel.ok("%unload_ext mcp_notebook\n%load_ext mcp_notebook")
    with Link(record_of(kernel)) as link:
        assert link.welcome.tools == []


def test_decorated_tools_come_back_with_the_next_load_as_they_were_when_it_was_unloaded(kernel):
    kernel.ok("from mcp_notebook import mcp_tool, mcp_tools, registry")
    kernel.ok("@mcp_tool\ndef old(): 'It.'", cell="a")
    kernel.ok("@mcp_tool\ndef new(): 'It.'", cell="a")
    for name in ("removed", "kept", "changed", "redefined"):
        kernel.ok(f"@mcp_tool\ndef {name}(): 'It.'")
    kernel.ok(
        "@mcp_tools\nclass Counter:\n    @mcp_tool\n    def add(self): 'Add.'\n"
        "    @mcp_tool\n    def clear(self): 'Clear.'"
    )
    kernel.ok("registry.remove('removed', 'clear')")
    kernel.ok("registry.update('changed', name='renamed', title='Renamed')")
    kernel.ok("%unload_ext mcp_notebook")
    kernel.ok("@mcp_tool\ndef redefined(): 'Redefined.'\n@mcp_tool\ndef late(): 'Late.'\ndel kept")
    kernel.ok("@mcp_tool\ndef kept(): 'Kept.'")
    kernel.ok("%load_ext mcp_notebook")
    tools = tools_of(kernel)
    assert sorted(tools) == ["add", "kept", "late", "new", "redefined", "renamed"]
    assert tools["renamed"].title == "Renamed"
    assert tools["redefined"].description == "Redefined."


def test_unloading_while_a_bridge_is_connected_shows_nothing_in_the_cell(kernel):
    with Link(record_of(kernel)) as link:
        assert kernel.ok("%unload_ext mcp_notebook").text.strip() == ""
        assert link.receive().type == "goodbye"


def test_calls_that_an_unload_stops_are_answered_with_the_goodbye(kernel):
    kernel.ok(
        "%%mcp_tool --run thread\nimport threading, time\nbegan = threading.Semaphore(0)\n"
        "def wait() -> None:\n    'Waits.'\n    began.release()\n"
        "    while True: time.sleep(0.001)"
    )
    with Link(record_of(kernel)) as link:
        for _ in range(5):
            link.start("wait")
        kernel.ok("for _ in range(5): assert began.acquire(timeout=60)")
        kernel.ok("%unload_ext mcp_notebook")
        # Not with what each of them says by itself: that would lack the next step.
        reason = "The notebook unloaded mcp_notebook."
        assert link.receive() == messages.Goodbye(reason=reason, is_unload=True)


def test_a_variable_that_fails_whatever_it_is_asked_does_not_hinder_loading(bare):
    bare.ok(
        "class Unbound:\n    def __getattribute__(self, name): raise RuntimeError('unbound')\n"
        "proxy = Unbound()\nfrom mcp_notebook import mcp_tool\n"
        "@mcp_tool\ndef one() -> int:\n    'One.'\n    return 1"
    )
    assert bare.ok("%load_ext mcp_notebook").stderr == ""
    with Link(record_of(bare)) as link:
        assert text_of(link.call("one")) == "1"


@pytest.mark.parametrize(("magic", "loaded"), [("unload_ext", 0), ("reload_ext", 1)])
def test_a_tool_may_unload_and_reload_the_extension(kernel, magic, loaded):
    kernel.ok(
        "%%mcp_tool\ndef away() -> None:\n    'Away.'\n"
        f"    get_ipython().run_line_magic('{magic}', 'mcp_notebook')\n    done.append(1)"
    )
    kernel.ok("import asyncio, os, threading\ndone = []")
    with Link(record_of(kernel)) as link:
        link.start("away")
        assert link.receive().type == "goodbye"
    after = left_behind(kernel)
    assert kernel.ok("print(done)").stdout == "[1]\n"
    assert after["threads"] == ["mcp-notebook-endpoint"] * loaded
    assert len(after["files"]) == 2 * loaded


def test_the_record_and_the_socket_are_readable_by_the_user_only(kernel):
    record = record_of(kernel)
    folder = kernel.home / ".mcp-notebook" / "kernels"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / f"{record.id}.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(record.socket).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(record.socket).parent.stat().st_mode) == 0o700


def test_a_deep_home_folder_gets_its_socket_in_a_short_place(home):
    deep = home / ("d" * 90)
    deep.mkdir()
    with live_kernel(home, env={"TMPDIR": str(home)}) as kernel:
        kernel.ok(f"%env MCP_NOTEBOOK_HOME={deep}\n%load_ext mcp_notebook")
        kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
        (file,) = (deep / "kernels").iterdir()
        path = json.loads(file.read_text())["socket"]
        assert len(path) <= 100
        assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("busy_with", ["cell", pytest.param("running", marks=pytest.mark.slow)])
def test_a_restart_is_told_at_once_although_the_main_thread_is_busy(own_kernel, busy_with):
    own_kernel.ok("%%mcp_tool\ndef sleep() -> None:\n    'S.'\n    import time\n    time.sleep(60)")
    began = time.monotonic()
    own_kernel.ok("1")
    cell_seconds = time.monotonic() - began
    with Link(record_of(own_kernel)) as link:
        if busy_with == "cell":
            own_kernel.start("print('began', flush=True)\nimport time; time.sleep(60)")
            own_kernel.wait_for("stream")
        link.start("sleep", progress=True)
        link.receive_until(lambda message: busy_with in getattr(message, "message", ""))
        began = time.monotonic()
        own_kernel.client.shutdown(restart=True)  # without the interrupt that frontends send before
        *before, goodbye = link.receive_until(lambda message: message.type == "goodbye")
        assert {message.type for message in before} <= {"progress"}
        assert goodbye == messages.Goodbye(reason="The kernel was restarted.")
        assert time.monotonic() - began < 1 + 50 * cell_seconds
        assert link.receive() is None
        assert not list((own_kernel.home / ".mcp-notebook" / "kernels").glob("*.json"))


def test_a_forked_child_lets_go_of_the_kernels_sockets(own_kernel):
    own_kernel.ok(
        "import os, warnings\nwarnings.simplefilter('ignore', DeprecationWarning)  # 3.12: fork"
    )
    own_kernel.ok(
        "%%mcp_tool\ndef fork() -> int:\n    'Fork.'\n    pid = os.fork()\n"
        "    if pid == 0:\n        import time\n        time.sleep(60)\n        os._exit(0)\n"
        "    return pid"
    )
    with Link(record_of(own_kernel)) as link:
        child = int(text_of(link.call("fork")))
        try:
            os.kill(own_kernel.pid, 9)
            assert link.receive() is None  # although the child still lives
            os.kill(child, 0)
        finally:
            os.kill(child, 9)


def test_importing_the_package_loads_neither_ipython_nor_mcp():
    code = (
        "import sys, mcp_notebook; mcp_notebook.__version__;"
        "print([m for m in ('IPython', 'mcp', 'pydantic', 'ipykernel') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_loading_the_extension_loads_nothing_that_only_some_tools_need():
    unused = "bs4 cloudpickle httpx2 jsonschema markdownify mcp multiprocessing narwhals numpy rich"
    code = (
        "import sys, mcp_notebook.kernel.extension;"
        f"print(*sorted({{*{unused.split()}}} & sys.modules.keys()))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "\n"


def test_the_kernel_never_loads_the_bridges_libraries(kernel):
    kernel.ok("%%mcp_tool\ndef one() -> int:\n    'One.'\n    return 1")
    with Link(record_of(kernel)) as link:
        link.call("one")
    foreign = ("uvicorn", "nbclient", "nbformat")
    shown = kernel.ok(f"import sys; print([m for m in {foreign} if m in sys.modules])")
    assert shown.stdout == "[]\n"


def test_ipython_in_a_terminal_is_told_what_it_lacks(home):
    shown = subprocess.run(
        list_words("-c", "%load_ext mcp_notebook", module="IPython", like=KERNEL),
        env=kernel_env(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "needs a Jupyter kernel" in shown.stdout + shown.stderr


@pytest.mark.parametrize("wrong", ["abc", "-"])
def test_a_wrong_setting_is_named_and_nothing_is_loaded(bare, wrong):
    output = bare.run(f"%env MCP_NOTEBOOK_LIMITS={wrong}\n%load_ext mcp_notebook")
    assert "MCP_NOTEBOOK_LIMITS" in output.error
    assert left_behind(bare)["threads"] == []


def test_a_decorated_function_that_cannot_be_a_tool_does_not_hinder_loading(bare):
    bare.ok(
        "from mcp_notebook import mcp_tool\n@mcp_tool(max_concurrency='2')\ndef odd(): 'Odd.'\n"
        "@mcp_tool\ndef one() -> int:\n    'One.'\n    return 1"
    )
    assert "`odd` is not offered as a tool" in bare.ok("%load_ext mcp_notebook").stderr
    with Link(record_of(bare)) as link:
        assert [tool.name for tool in link.welcome.tools] == ["one"]


LIBRARY = """
class Shape:
    pass

try:
    shell = get_ipython()
except NameError:
    pass  # not in a notebook: nothing to register
else:
    formatter = shell.display_formatter.formatters["text/markdown"]
    formatter.for_type(Shape, lambda shape: f"a shape of {__name__}")
"""
MODES = ("main", "thread", "fork", "coroutine")


def test_a_library_that_a_call_imports_first_finds_the_notebook_as_a_cell_does(bare):
    # As holoviews does: without the builtin `get_ipython`, it registers no formatters.
    bare.ok("%load_ext mcp_notebook\nfrom mcp_notebook import mcp_tool")
    for mode in MODES:
        (bare.home / f"shapes_{mode}.py").write_text(LIBRARY)
        run = "" if mode == "coroutine" else f", run={mode!r}"
        bare.ok(
            f"@mcp_tool(read_only=True{run})\n"
            f"{'async ' if mode == 'coroutine' else ''}def shape_{mode}():\n"
            f"    import shapes_{mode} as shapes\n    return shapes.Shape()"
        )
    with Link(record_of(bare)) as link:
        texts = [text_of(link.call(f"shape_{mode}")) for mode in MODES]
    assert texts == [f"a shape of shapes_{mode}" for mode in MODES]


FILL_DISK = """
import resource
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file sizes")
@pytest.mark.parametrize("line", ["%load_ext mcp_notebook", "%reload_ext mcp_notebook"])
def test_a_full_disk_is_one_sentence_and_the_tools_are_back_when_there_is_room(bare, line):
    if line.startswith("%reload"):
        bare.ok("%load_ext mcp_notebook")
        bare.ok("%%mcp_tool\ndef total(a: int): return a")
    bare.ok(FILL_DISK)
    output = bare.run(line)
    bare.ok("resource.setrlimit(resource.RLIMIT_FSIZE, before)")
    assert output.error.startswith("UsageError: Clients cannot find the notebook, because no file")
    assert "Free some space, or set MCP_NOTEBOOK_HOME to another folder" in output.error
    assert left_behind(bare)["threads"] == left_behind(bare)["magics"] == []
    bare.ok("%load_ext mcp_notebook")
    assert list(tools_of(bare)) == (["total"] if line.startswith("%reload") else [])


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="root can write everywhere else")
def test_a_home_that_is_read_only_is_one_sentence_that_names_the_variable(bare, tmp_path):
    output = bare.run("%env MCP_NOTEBOOK_HOME=/sys/mcp-notebook\n%load_ext mcp_notebook")
    assert "UsageError: The notebook cannot listen for clients in /sys/mcp-notebook" in output.text
    assert "[Errno" not in output.text
    assert "Set MCP_NOTEBOOK_HOME to a folder on a local disk that you can write to" in output.text
    bare.ok(f"%env MCP_NOTEBOOK_HOME={tmp_path}/home\n%load_ext mcp_notebook")
    bare.ok("%unload_ext mcp_notebook\n%env -u MCP_NOTEBOOK_HOME")
