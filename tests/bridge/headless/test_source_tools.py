"""What a notebook will offer is read from its source, as far as that tells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook import meta_keys
from mcp_notebook.bridge.headless.source_tools import MAX_DESCRIPTION, list_source_tools

DEF = "def f(a, /, b=1, *rest, c, **more):\n    '''Sums.\n\n    Args:\n        a: One.\n    '''"

F = ["a", "b", "rest", "c"]


def _list(*sources, tags=()):
    return list_source_tools([(source, list(tags)) for source in sources])


def _read(*sources):
    """Return the parameters of each tool, by its name."""
    return {tool.name: list(tool.input_schema["properties"]) for tool in _list(*sources)}


@pytest.mark.parametrize(
    ("cells", "tools"),
    [
        # cells of functions
        ([f"%%mcp_tool\n{DEF}\ndef _g(): ...\ndef h(): ..."], {"f": F, "h": []}),
        ([f"\n  %%mcp_tool --name sum\n  {DEF}"], {"sum": F}),
        (["%%mcp_tool\nimport os\n%time\nx = !ls\nos?\ndef f():\n    %time 1"], {"f": []}),
        (["%%mcp_tool\nfrom os import getcwd\ndef f(ctx: Context, año, é, n): ..."], {"f": ["n"]}),
        (["%%mcp_tool\ndef f(a: A[int, Hidden], b: 'Context|None', c=1): ..."], {"f": ["c"]}),
        (["%%mcp_tool\ndef broken(:"], {}),
        (["%%mcp_tool\ndef f(): ...\ng = lambda x: x"], {"f": []}),
        ([f"@mcp_tool({'-' * 3_000}1)\ndef f(): ...", "@mcp_tool\ndef g(): ..."], {"g": []}),
        (["%%mcp_tool --name 'not a name'\ndef f(): ..."], {}),
        (["%%mcp_tool 'open\ndef f(): ..."], {"f": []}),
        # cells that are a tool's body
        (["%%mcp_tool f(a: str = ')', b=(1, 2)) -> str --title T\na"], {"f": ["a", "b"]}),
        (["%%mcp_tool --title 'A (b)' f(\n    a,\n    b=[')'],\n)\n%time a"], {"f": ["a", "b"]}),
        (["%%mcp_tool f(a"], {}),
        (["%%mcp_tool f(a) --name g\n1"], {"g": ["a"]}),
        # functions that exist already
        ([DEF, "%mcp_tool f"], {"f": F}),
        (["from m import h as i, j\ng = 1", "x = 1\n%mcp_tool i, g no"], {"i": []}),
        (["%mcp_tool statistics.mean model.predict"], {"mean": [], "predict": []}),
        (["def f(a): ...", "%mcp_tool f --name g --errors short"], {"g": ["a"]}),
        ([DEF + '\nx = f"""\n%mcp_tool f\n""" + """\n%mcp_tool f\n"""'], {}),
        # decorators
        (["@mcp_tool\nasync def f(a): ..."], {"f": ["a"]}),
        (["@mcp_notebook.mcp_tool(name='g')\n@cache\ndef h(): ..."], {"g": []}),
        (["@mcp_tool(title=TITLE, run='thread')\ndef f(): ..."], {"f": []}),
        (["@mcp_tool(name=1)\ndef f(): ...", "@other.tool\ndef g(): ..."], {}),
        # the last declaration counts
        (["%%mcp_tool\ndef f(a): ...", "%%mcp_tool\ndef f(b): ..."], {"f": ["b"]}),
        # other cells
        (["%%writefile f.py\n@mcp_tool\ndef f(): ...", "%%mcp_tools\ndef g(): ..."], {}),
        (["%%bash\n%mcp_tool f", "# %%mcp_tool\ndef f(): ..."], {}),
    ],
)  # fmt: skip
def test_names_and_parameters_are_those_of_the_source(cells, tools):
    assert _read(*cells) == tools


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (f"%%mcp_tool\n{DEF}", "Sums.\n\nArgs:\n    a: One."),
        (f"%%mcp_tool --description 'It adds.'\n{DEF}", "It adds."),
        ("%%mcp_tool f()\n# Plots\n#  it.\nplot()  # now", "Plots\nit."),
        ("%%mcp_tool f()\n'''Plots it.'''\nplot()", "Plots it."),
        ("@mcp_tool(description='It adds.')\ndef f(): 'Adds.'", "It adds."),
        ("%%mcp_tool\ndef f(): '\\ud800'", "\ufffd"),
        (f"%%mcp_tool\ndef f(): {'x' * 2 * MAX_DESCRIPTION!r}", "x" * MAX_DESCRIPTION),
    ],
)
def test_the_description_is_the_docstring_unless_an_option_gives_it(cell, said):
    assert _list(cell)[0].description == said


@pytest.mark.parametrize(
    "cell",
    [
        "%%mcp_tool --read-only --tag 'a, b' --tag=c --title T\ndef f(): ...",
        "%%mcp_tool f() --read-only --tag a,b --tag c --title='T'\n1",
        "@mcp_tool(read_only=True, tags=('a', 'b', 'c'), title='T')\ndef f(): ...",
        "%%mcp_tool --read-only --tag a,b,c\n@mcp_tool(title='T')\ndef f(): ...",
        "def f(): ...\n%mcp_tool f --read-only --tag a,b,c --title T",
    ],
)
def test_options_by_which_callers_may_see_a_tool_are_read(cell):
    (tool,) = _list(cell)
    assert tool.title == "T"
    assert tool.annotations == {"readOnlyHint": True}
    assert tool.meta == {meta_keys.TAGS: ["a", "b", "c"]}
    assert tool.input_schema["additionalProperties"] is True


def test_prompts_are_read_and_cells_that_are_skipped_are_not():
    (prompt,) = _list("%%mcp_prompt weekly(week)\n## The week {week}\nIts text isn't Python.")
    assert (prompt.kind, prompt.name, prompt.description) == ("prompt", "weekly", "The week {week}")
    assert _list("@mcp_prompt\ndef greet(name): ...")[0].kind == "prompt"
    assert _list(f"%%mcp_tool\n{DEF}", tags=["skip-execution"]) == []


_PIECES = st.sampled_from(
    ["%%mcp_tool", "%mcp_tool ", "@mcp_tool(", "f(", ")", "'", '"', "def f(a):", "--name", "=",
     "\n", " ", "    ", "1", "\\", "#", "!", "?", "\x00", "é", "lambda", ":", "\r", "\t", "("]
)  # fmt: skip


@pytest.mark.parametrize("piece", [" ", "(", ")", "f(", "'", '"', "\n", "@", "a."])
@pytest.mark.timeout(20)
def test_a_long_source_takes_no_time(piece):
    for head in ("%%mcp_tool f(", "%%mcp_tool ", "%mcp_tool ", "@mcp_tool\n", "!mcp_tool\n"):
        _list(head + piece * 100_000)


@given(st.lists(st.lists(_PIECES, max_size=30).map("".join), max_size=3))
def test_no_source_is_an_error(cells):
    for tool in _list(*cells):
        assert tool.name
