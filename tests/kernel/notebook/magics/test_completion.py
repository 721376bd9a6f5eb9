"""What Tab offers on the lines of the magics."""

import pytest

from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS


@pytest.fixture(scope="module")
def notebook(shared_kernel, rain_cell):
    """A notebook with the tool `rain`, which completing changes nothing about.

    To empty it for each case, as others do, would take longer than the case: what completions
    leave behind is much to look through for garbage.
    """
    shared_kernel.ok(rain_cell)
    return shared_kernel


def complete(kernel, typed):
    """Return what Tab offers at the end of a line, in order."""
    kernel.client.complete(typed, len(typed))
    return kernel.client.get_shell_msg(timeout=30)["content"]["matches"]


def test_each_word_says_what_it_is(notebook):
    for typed, kind in [
        ("%mcp st", "magic"),
        ("%mcp call r", "function"),
        ("%mcp log --", "param"),
    ]:
        notebook.client.complete(typed, len(typed))
        metadata = notebook.client.get_shell_msg(timeout=30)["content"]["metadata"]
        assert {each["type"] for each in metadata["_jupyter_types_experimental"]} == {kind}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%mcp sta", "status"),
        ("%mcp pa", "panel"),
        ("%mcp call ra", "rain"),
        ("%mcp call rain city=Seattle y", "year="),
        ("%mcp help re", "record"),
        ("%mcp serve ", "--stop"),
        ("%mcp log rain --e", "--errors"),
        ("%mcp_tool rain --tim", "--timeout"),
        ("%%mcp_tool --rea", "--read-only"),
        ("x = 1\n  %mcp call ra", "rain"),
    ],
)
def test_tab_completes_verbs_tools_and_arguments(notebook, typed, offered):
    assert complete(notebook, typed) == [offered]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%mcp ", list(VERBS)),
        ("%mcp call rain ", ["city=", "year="]),
        ("%mcp call rain year=2012 ", ["city="]),
        ("%mcp call rain city=", ["city=Seattle"]),  # the call would read `New York` as two words
        ("%mcp log ", ["rain", "-n", "--errors"]),
    ],
)
def test_tab_offers_our_words_in_their_order_and_no_python(notebook, typed, offered):
    assert complete(notebook, typed) == offered


def test_where_a_magic_takes_names_of_python_they_are_offered(notebook):
    assert complete(notebook, "%mcp_tool ra")[0] == "rain"
    assert "range" in complete(notebook, "ra")


def test_a_name_that_ipython_would_expand_is_not_offered(notebook):
    notebook.ok(
        "from typing import Annotated\nfrom pydantic import Field\n"
        "names = ['a-b', '{fired}', '$x', 'b c', \"'\"]\n"
        "hints = {f'n{at}': Annotated[str, Field(alias=name)] for at, name in enumerate(names)}\n"
        "def odd(n0, n1, n2, n3, n4): 'O.'\nodd.__annotations__ = hints\n%mcp_prompt odd"
    )
    assert complete(notebook, "%mcp call odd ") == ["a-b="]


def test_only_values_that_a_call_reads_back_are_offered(notebook):
    notebook.ok(
        "from typing import Literal\nfrom mcp_notebook import mcp_tool\n"
        "@mcp_tool\ndef pick(kind: Literal['a', '1', '{x}', 'null', 3], flag: bool = False): 'P.'"
    )
    assert complete(notebook, "%mcp call pick kind=") == ["kind=a", "kind=3"]
    assert complete(notebook, "%mcp call pick flag=") == ["flag=true", "flag=false"]
