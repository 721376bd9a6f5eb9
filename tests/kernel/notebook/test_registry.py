"""Tools from data, in a notebook and without one."""

import pytest
from live import Link, record_of, text_of, tools_of

from mcp_notebook import Tool, registry
from mcp_notebook.errors import DefinitionError, NoSuchTool

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


def test_a_missing_tool_is_a_key_error_with_the_closest_name():
    error = NoSuchTool("lokup", ("lookup", "other"))
    assert isinstance(error, KeyError)
    assert str(error) == "This notebook has no tool 'lokup'; did you mean 'lookup'?"
    assert str(NoSuchTool("a", is_any=True)).endswith("called 'a'; it declares nothing.")


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
        assert link.welcome.other_kinds == []


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


def test_many_threads_may_add_and_remove(shared_kernel):
    shared_kernel.ok(SETUP)
    shown = shared_kernel.ok(
        "def work(n):\n"
        "    for i in range(20):\n"
        "        registry.add(Tool(name=f't{n}-{i}', handler=lambda: 1))\n"
        "        if i % 2: registry.remove(f't{n}-{i}')\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(registry))"
    ).stdout
    assert shown == "80\n"
    shared_kernel.ok("registry.remove(*registry)")


def test_a_type_of_ones_own_is_converted_until_the_extension_is_unloaded(shared_kernel):
    shared_kernel.ok(
        SETUP
        + "class Portfolio: ...\n"
        + "registry.add(Tool(name='p', handler=lambda: [Portfolio()], read_only=True, cache=60))"
    )
    with Link(record_of(shared_kernel)) as link:
        assert "Portfolio object" in text_of(link.call("p"))
        shared_kernel.ok(
            "@registry.convert(Portfolio)\n"
            "def value(portfolio):\n    print('counting')\n    return {'value': 5}\n"
            "assert value(None) == {'value': 5}"
        )
        assert text_of(link.call("p")) == 'counting\n{"value":5}'
        shared_kernel.ok("registry.convert(Portfolio, None)")
        assert "Portfolio object" in text_of(link.call("p"))
        # IPython's own way, which counts for what the notebook shows, too.
        shared_kernel.ok(
            "formatters = get_ipython().display_formatter.formatters\n"
            "formatters['text/markdown'].for_type(Portfolio, lambda p: '**five**')\n"
            "registry.convert('__main__.Portfolio', lambda p: p)"
        )
        assert text_of(link.call("p")) == "**five**"
    shown = shared_kernel.ok("fails(lambda: registry.convert(5, str))\nregistry.remove('p')").stdout
    assert shown.startswith("DefinitionError `registry.convert` takes a class or its full name")


def test_they_outlive_a_reload_but_not_an_unload_and_the_facade_finds_the_extension(shared_kernel):
    shared_kernel.ok(SETUP + "registry.remove(*registry)")
    shared_kernel.ok("class Portfolio: ...\nregistry.convert(Portfolio, lambda p: 'five')")
    shared_kernel.ok("registry.add(Tool(name='a', handler=lambda: Portfolio()))")
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


EVERY_WAY = {
    "the magic": "%%mcp_tool\ndef f(): 'F.'",
    "a cell as a tool": "%%mcp_tool f()\n1",
    "the decorator": "@mcp_tool\ndef f(): 'F.'",
    "another name": "@mcp_tool(name='other')\ndef f(): 'F.'",
    "the line": "def f(): 'F.'\n%mcp_tool f",
    "a lambda": "f = lambda: 1\n%mcp_tool f --description F",
    "an alias": "def g(): 'F.'\nf = g\n%mcp_tool f",
    "a method": "class C:\n    def g(self): 'F.'\nf = C()\n%mcp_tool f.g",
    "a module's function": "import statistics as f\n%mcp_tool f.mean",
    "a marked object": (
        "class C:\n    @mcp_tool\n    def g(self): 'F.'\nf = C()\n%mcp_tool f --prefix f_"
    ),
    "a class of tools": "@mcp_tools\nclass f:\n    @mcp_tool\n    def g(self): 'F.'",
}


@pytest.mark.parametrize("declare", EVERY_WAY.values(), ids=EVERY_WAY)
def test_del_removes_what_was_declared_from_a_variable_in_whatever_way(kernel, declare):
    kernel.ok("from mcp_notebook import Tool, mcp_tool, mcp_tools, registry")
    kernel.ok(declare)
    assert len(tools_of(kernel)) == 1
    kernel.ok("del f")
    assert tools_of(kernel) == {}


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
