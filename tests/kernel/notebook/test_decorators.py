"""``@mcp_tool`` and ``@mcp_tools`` where no notebook is: what they mark, what they refuse."""

import abc
import inspect
from dataclasses import dataclass, fields

import pytest

from mcp_notebook import mcp_tool, mcp_tools
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.options import ToolOptions


def function():
    """F."""


def with_tool(**members):
    return type("Box", (), {"f": mcp_tool(lambda _self: 1), **members})


def with_arguments(self, path, *, mode):
    """Needs arguments."""


@pytest.mark.parametrize(
    ("decorate", "said"),
    [
        (lambda: mcp_tool(nmae="x"), "`@mcp_tool` has no option `nmae`. Did you mean `name`?"),
        (lambda: mcp_tool(zzz=1), "`@mcp_tool` has no option `zzz`. It has name, title,"),
        (lambda: mcp_tools(prefx=""), "`@mcp_tools` has no option `prefx`. Did you mean `prefix`?"),
        (lambda: mcp_tool("rain"), "`@mcp_tool('rain')`: options are keywords"),
        (lambda: mcp_tool(5), "not for an object of type int"),
        (lambda: mcp_tool(property(function)), "not for an object of type property"),
        (
            lambda: mcp_tool(type("Box", (), {})),
            "`Box` is a class: put `@mcp_tool` above the methods",
        ),
        (lambda: mcp_tool(classmethod(function)), "a classmethod outside of a class"),
        (lambda: mcp_tool(len), "does not allow attributes"),
        (lambda: mcp_tools(function), "`@mcp_tools` is for classes"),
        (lambda: mcp_tools(type("Box", (), {})), "`Box` has no tools"),
        (
            lambda: mcp_tools(with_tool(__init__=with_arguments)),
            "create the object, `box = Box(...)`, and write `%mcp_tool box`.",
        ),
        (
            lambda: mcp_tools(
                abc.ABCMeta("A", (with_tool(),), {"g": abc.abstractmethod(function)})
            ),
            "`A` is abstract",
        ),
    ],
)
def test_what_cannot_be_decorated_is_refused_in_a_sentence(decorate, said):
    with pytest.raises(DefinitionError) as caught:
        decorate()
    assert said in str(caught.value)
    (shown,) = caught.value._render_traceback_()
    assert shown == f"DefinitionError: {caught.value}"


def test_an_error_of_the_constructor_is_the_authors_own():
    def fails(self):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        mcp_tools(with_tool(__init__=fails))


def test_a_dataclass_can_be_a_class_of_tools():
    @mcp_tools(prefix="d_")
    @dataclass
    class Data:
        total: int = 3

        @mcp_tool
        def get(self) -> int:
            """Get."""
            return self.total

    assert Data.mcp_instance.get() == 3


def test_each_option_is_a_keyword():
    parameters = inspect.signature(mcp_tool).parameters
    assert {option.name for option in fields(ToolOptions)} == set(parameters) - {
        "function",
        "unknown",
    }
