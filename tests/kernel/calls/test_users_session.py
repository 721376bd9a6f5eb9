"""Nothing of a call is in the user's cells or names, and each call is answered."""

import os

import pytest
from live import kernel_with, text_of, tools_of

TOOLS = """
import asyncio, contextlib, os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mcp_notebook import mcp_tool
from mcp_notebook.kernel.calls import execution

def bind(line):
    get_ipython().user_ns[line.strip()] = "by a magic"

get_ipython().register_magic_function(bind, magic_name="bind")
Path("script.py").write_text("total = 'by a script'\\n")
Path("failing.py").write_text("1/0")

ACTIONS = {
    "inspect": lambda: get_ipython().run_line_magic("pinfo", "len"),
    "load": lambda: get_ipython().run_line_magic("load", "script.py"),
    "next": lambda: get_ipython().set_next_input("the next cell", replace=True),
    "edit": lambda: get_ipython().run_line_magic("edit", "script.py"),
    "evaluate": lambda: exec(compile("40 + 2", "", "single")),
    "run": lambda: get_ipython().run_cell("40 + 2").result + 1,
    "ask": lambda: get_ipython().system("read x; echo got:$x; cat </dev/tty; cat"),
    "signal": lambda: (get_ipython().system("kill -9 $$"), get_ipython().user_ns["_exit_code"])[1],
    "close": lambda: (sys.stdout.close(), sys.stderr.close(), print("after"))[0],
    "nest": lambda: get_ipython().run_line_magic("mcp", "call inner"),
    "fail": lambda: get_ipython().run_cell("1/0") and None,
    "misspell": lambda: get_ipython().run_cell("1 +") and None,
    "script": lambda: get_ipython().run_line_magic("run", "failing.py"),
    "read": lambda: (repr(sys.stdin.read()), sys.stdin.close(), os.read(sys.stdin.fileno(), 1))[0],
    "replace": lambda: contextlib.redirect_stdout(open(os.devnull, "w")).__enter__() and None,
}

def act(action: str):
    return ACTIONS[action]()

@mcp_tool(run="fork", read_only=True)
def inner():
    print("printed within")
    return 42

main = mcp_tool(name="main")(lambda action: act(action))
thread = mcp_tool(name="thread", run="thread")(lambda action: act(action))
fork = mcp_tool(name="fork", run="fork", read_only=True)(lambda action: act(action))

@mcp_tool
async def coroutine(action: str):
    await asyncio.sleep(0)
    return act(action)

@mcp_tool
def by_pool() -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(get_ipython().set_next_input, "of a pool").result()
"""

kernel = kernel_with(TOOLS)
MODES = [
    "main",
    "coroutine",
    "thread",
    pytest.param(
        "fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot")
    ),
]
every_mode = pytest.mark.parametrize("mode", MODES)


def read_payloads(kernel):
    """Run a cell, and return what its frontend is to do."""
    request = kernel.client.execute("1")
    while True:
        reply = kernel.client.get_shell_msg(timeout=60)
        if reply["parent_header"].get("msg_id") == request:
            return reply["content"]["payload"]


@every_mode
@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("inspect", "Return the number of items in a container."),
        ("load", "total = 'by a script'"),
        ("next", "the next cell"),
        ("edit", "Done: the tool returned nothing."),
    ],
)
def test_what_a_call_pages_or_loads_is_in_its_result_and_in_no_cell(
    kernel, link, mode, action, said
):
    assert said in text_of(link.call(mode, action=action))
    assert read_payloads(kernel) == []


def test_what_a_pool_of_a_call_loads_is_in_no_cell(kernel, link):
    link.call("by_pool")
    assert read_payloads(kernel) == []


@every_mode
@pytest.mark.parametrize(("action", "said"), [("evaluate", "42"), ("run", "42\n43")])
def test_what_a_call_evaluates_as_a_cell_does_is_shown_in_its_result(
    kernel, link, mode, action, said
):
    kernel.ok("'the last value'")
    assert text_of(link.call(mode, action=action)) == said
    output = kernel.ok("_")  # what came to the client before this cell would be of the last one
    assert [data["text/plain"] for data in output.displays] == ["'the last value'"]


@every_mode
def test_the_result_of_a_call_within_a_call_is_shown_in_it(kernel, link, mode):
    assert text_of(link.call(mode, action="nest")) == "printed within\n42"
    assert kernel.ok("print('later')").stdout == "later\n"


@every_mode
@pytest.mark.parametrize(
    ("action", "said"),
    [("fail", "ZeroDivisionError"), ("misspell", "SyntaxError"), ("script", "ZeroDivisionError")],
)
def test_an_error_that_ipython_shows_is_in_the_result_and_in_no_cell(
    kernel, link, mode, action, said
):
    assert said in text_of(link.call(mode, action=action))
    # An error that came before that of this cell would be of the last one.
    request = kernel.start("raise LookupError")
    assert kernel.wait_for("error")["ename"] == "LookupError"
    kernel.finish(request)


@every_mode
def test_the_input_of_a_call_is_empty_and_its_own(kernel, link, mode):
    kernel.ok("import io; sys.stdin = io.StringIO('of the cells')")
    assert text_of(link.call(mode, action="read")) == "''"
    assert text_of(link.call(mode, action="read")) == "''"
    assert kernel.ok("print(sys.stdin.read())").stdout == "of the cells\n"


@every_mode
def test_a_command_that_asks_finds_the_end_of_its_input(link, mode):
    text = text_of(link.call(mode, action="ask"))
    assert text.startswith("got:\n")
    assert "/dev/tty" in text


@every_mode
def test_a_command_that_a_signal_ends_has_its_exit_code(link, mode):
    assert text_of(link.call(mode, action="signal")) == "-9"


@every_mode
def test_streams_that_a_call_closes_or_replaces_are_those_of_the_next_cell(kernel, link, mode):
    assert text_of(link.call(mode, action="close")) == "after"
    link.call(mode, action="replace")
    output = kernel.ok("print('printed'); print('error', file=sys.stderr)")
    assert (output.stdout, output.stderr) == ("printed\n", "error\n")


@every_mode
@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("%time total = sum(i * n for i in range(n))\ntotal", "9"),
        ("%run script.py\ntotal", "by a script"),
        ("%bind total\nreturn total", "by a magic"),
        ("get_ipython().run_cell('total = n; f = lambda: total')\nf()", "3"),
        ("!true\nget_ipython().ex('total = n')\ntotal", "3"),
    ],
)
def test_names_that_magics_bind_are_the_calls_own(kernel, link, mode, body, value):
    options = {"thread": "--run thread", "fork": "--run fork --read-only"}.get(mode, "")
    wait = "await asyncio.sleep(0)\n" if mode == "coroutine" else ""
    kernel.ok("total = f = _exit_code = 'of the notebook'")
    kernel.ok(f"%%mcp_tool cell(n: int) {options}\n{wait}{body}")
    assert text_of(link.call("cell", n=3)).splitlines()[-1] == value
    assert kernel.ok("print({total, f, _exit_code})").stdout == "{'of the notebook'}\n"


@every_mode
@pytest.mark.parametrize("owner", ["Execution.begin", "CallEnvironment.surround", "CallLog.end"])
def test_a_call_is_answered_even_if_code_of_this_package_raises(kernel, link, mode, owner):
    name = owner.partition(".")[0]
    module = {"Execution": "execution", "CallEnvironment": "environment", "CallLog": "call_log"}
    kernel.ok(
        f"from mcp_notebook.kernel.calls.{module[name]} import {name}\n"
        f"kept = {owner}\n"
        "def fail(*args, **options): raise ModuleNotFoundError('renamed')\n"
        f"{owner} = fail"
    )
    result = link.call(mode, action="evaluate")
    kernel.ok(f"{owner} = kept")
    assert "renamed" in text_of(result) or not result.is_error
    assert text_of(link.call(mode, action="evaluate")) == "42"


SHAPES = '''
def area(side: int{more}) -> int:
    """{words}"""
    return {times} * side
'''


@every_mode
def test_with_autoreload_a_call_and_its_tool_see_the_edited_file(kernel, link, mode):
    def write(name, at, **values):
        file = kernel.home / f"{name}.py"
        file.write_text(SHAPES.format(**values))
        os.utime(file, (at, at))

    name, options = f"shapes_{mode}", {"thread": "run='thread'"}.get(mode, "")
    if mode == "fork":
        options = "run='fork', read_only=True"
    write(name, 2e9, more="", words="Old.", times=1)
    kernel.ok("%load_ext autoreload\n%autoreload 2\nsys.path[:0] = ['.']")
    kernel.ok(f"from {name} import area\nmcp_tool({options})(area)")
    assert text_of(link.call("area", side=1)) == "1"
    write(name, 2e9 + 1, more=", height: int = 1", words="New.", times=5)
    assert text_of(link.call("area", side=1)) == "5"
    kernel.ok("%autoreload 0")  # a cell: until then, only the copy of `fork` has the new tool
    tool = tools_of(kernel)["area"]
    assert (tool.description, list(tool.input_schema["properties"])) == ("New.", ["side", "height"])
