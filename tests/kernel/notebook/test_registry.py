"""Tools from data, in a notebook and without one."""

import pytest
from live import Link, record_of, tools_of

from mcp_notebook import Tool, registry
from mcp_notebook.errors import DefinitionError

SETUP = """
import threading
from mcp_notebook import Tool, registry
def work(): 'Work.'
def fails(act):
    try:
        act()
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("no error")
"""


def test_without_a_notebook_one_sentence_says_what_to_do():
    for use in (
        lambda: registry.add(Tool(name="a", handler=print)),
        lambda: registry["a"],
        lambda: len(registry),
    ):
        with pytest.raises(DefinitionError, match="load_ext mcp_notebook"):
            use()
    assert "load_ext" in repr(registry)


def test_a_prompt_can_be_removed_and_is_not_called_a_tool(kernel):
    kernel.ok(SETUP)
    kernel.ok("%%mcp_prompt report(year: int)\nOn {year}.")
    assert "called 'rain'; it declares report." in kernel.run("registry.remove('rain')").error
    said = kernel.run("registry.update('report', title='R')").error
    assert "'report' is a prompt, not a tool: change it in its cell." in said
    assert "The prompt 'report' is gone: `report` was set to" in kernel.ok("report = 7").text
    kernel.ok("%%mcp_prompt report(year: int)\nOn {year}.", cell="c")
    assert "The prompt `report` is gone" in kernel.ok("1", cell="c").text
    kernel.ok("%%mcp_prompt report(year: int)\nOn {year}.")
    kernel.ok("registry.remove('report')")
    with Link(record_of(kernel)) as link:
        assert "prompt" not in {tool.kind for tool in link.welcome.tools}


def test_each_wrong_use_is_one_sentence_and_changes_nothing(shared_kernel):
    shared_kernel.ok(SETUP + "registry.add(Tool(name='lookup', handler=lambda: 1))")
    for code, said in {
        "registry.remove('lookup', 'lokup')": "called 'lokup'; did you mean 'lookup'?",
        "registry['x']": "no tool 'x'",
        "registry.update('x', title='X')": "no tool 'x'",
        "registry.update('lookup', titel='X')": "has no option `titel`. Did you mean `title`?",
        "registry.update('lookup', handler=3)": "not a function",
        "registry.add(Tool(name='a', handler=work, titel='A'))": "`Tool` has no option `titel`.",
        "registry.add(print)": "`registry.add` takes `Tool(",
        "registry.add(Tool(name='a', handler=work), Tool(name='a', handler=work))": "added twice",
        "registry.add(Tool(name='ok', handler=lambda: 1), Tool(name='n n', handler=print))": "n n",
        "registry.add(Tool(name='kw', handler=lambda **k: 1))": "input_schema={...}",
        "registry.add(Tool(name='c', handler=print, cache=60, input_schema={'type': 'object'}))": (
            "read_only=True"
        ),
    }.items():
        shown = shared_kernel.ok(f"fails(lambda: {code})\nprint(list(registry))").stdout
        assert said in shown
        assert shown.endswith("\n['lookup']\n")
        assert shown.count("\n") == 2
    shared_kernel.ok("registry.add(Tool(name='other', handler=lambda: 2))")
    shown = shared_kernel.ok("fails(lambda: registry.update('lookup', name='other'))").stdout
    assert "there is a tool of that name" in shown
    shared_kernel.ok("registry.remove('lookup', 'other')")


def test_update_of_a_function_of_the_notebook_keeps_following_it(shared_kernel):
    shared_kernel.ok(SETUP + "%mcp_tool fails")
    shared_kernel.ok("registry.update('fails', title='Fails', name='failing')")
    shared_kernel.ok("def fails(number: int): 'New.'")
    shown = shared_kernel.ok("print(registry['failing'].title)\n%mcp list").text
    assert shown.startswith("Fails")
    assert "failing(number: int)" in shown
    shared_kernel.ok("registry.update('failing', handler=lambda: 1)\ndel fails")
    assert shared_kernel.ok("print(list(registry))").stdout == "['failing']\n"
    shared_kernel.ok("registry.remove('failing')")


def test_they_outlive_a_reload_but_not_an_unload_and_the_facade_finds_the_extension(shared_kernel):
    shared_kernel.ok(SETUP + "registry.remove(*registry)")
    shared_kernel.ok("registry.add(Tool(name='a', handler=lambda: 'five'))")
    shared_kernel.ok("%reload_ext mcp_notebook")
    assert "five" in shared_kernel.ok("%mcp call a").stdout
    shared_kernel.ok("%unload_ext mcp_notebook\n%load_ext mcp_notebook")
    assert shared_kernel.ok("print(len(registry))").stdout == "0\n"
    shared_kernel.ok("registry.add(Tool(name='b', handler=lambda: 1))")
    assert "b()" in shared_kernel.ok("%mcp list").text


def test_an_updated_tool_still_follows_what_it_was_made_of(shared_kernel):
    shared_kernel.ok(SETUP + "registry.remove(*registry)")
    counter = (
        "from mcp_notebook import mcp_tool\nclass Counter:\n    def __init__(self, n): self.n = n\n"
        "    @mcp_tool\n    def get(self) -> int:\n        'Get.'\n        return self.n\n"
        "c = Counter(1)"
    )
    shared_kernel.ok(counter)
    shared_kernel.ok("%mcp_tool c")
    shared_kernel.ok("registry.update('get', priority=2)")
    shared_kernel.ok("c = Counter(50)")
    assert "50" in shared_kernel.ok("%mcp call get").stdout
    shared_kernel.ok("del c")
    assert shared_kernel.ok("print(list(registry))").stdout == "[]\n"
    shared_kernel.ok("%%mcp_tool\ndef f():\n    'Old.'\n    return 'old'")
    shared_kernel.ok("registry.update('f', title='F')")
    shared_kernel.ok("def f():\n    'New.'\n    return 'new'")
    shared_kernel.ok("registry.update('f', priority=1)")
    assert shared_kernel.ok("print(registry['f'].handler())").stdout == "new\n"
    assert "new" in shared_kernel.ok("%mcp call f").stdout


def test_what_has_no_variable_is_removed_by_its_name_and_its_function_stays(kernel):
    kernel.ok("from mcp_notebook import Tool, mcp_tool, registry")
    kernel.ok("@mcp_tool\ndef f(): return 1\nregistry.add(Tool(name='g', handler=f))")
    kernel.ok("del f")
    kernel.ok("h = mcp_tool(name='h')(lambda: 1)\ndel h")
    assert list(tools_of(kernel)) == ["g", "h"]
    kernel.ok("registry.remove('g', 'h')")
    assert tools_of(kernel) == {}
    kernel.ok("@mcp_tool\ndef f(): return 1")
    kernel.ok("registry.remove('f')\nassert f() == 1")
    assert tools_of(kernel) == {}
