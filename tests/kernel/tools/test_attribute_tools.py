"""Tools that are attributes: of objects, modules and classes of tools; how they follow."""

import builtins
import functools
import statistics
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from refusals import refusal_of

from mcp_notebook import mcp_tool, mcp_tools
from mcp_notebook.kernel.tools.attribute_tools import (
    find_classes_of_tools,
    find_marked_methods,
    make_tools_by_name,
)
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import ToolRegistry


class Counter:
    def __init__(self, start=0):
        self.total = start

    @property
    def broken(self):
        raise RuntimeError

    @mcp_tool
    def add(self, n: int) -> int:
        """Add."""
        self.total += n
        return self.total

    @mcp_tool(name="clear", timeout="3s")
    def reset(self) -> None:
        """Reset."""
        self.total = 0

    @mcp_tool
    @staticmethod
    def outer_static(x: int) -> int:
        """S."""
        return x

    @staticmethod
    @mcp_tool
    def inner_static(x: int) -> int:
        """S."""
        return x

    @mcp_tool
    @classmethod
    def outer_class(cls) -> str:
        """C."""
        return cls.__name__

    @classmethod
    @mcp_tool
    def inner_class(cls) -> str:
        """C."""
        return cls.__name__

    def plain(self):
        """No tool."""


NAMES = ["add", "clear", "outer_static", "inner_static", "outer_class", "inner_class"]


class Model:
    """Predicts."""

    def __init__(self, factor=2):
        self.factor = factor

    def predict(self, x: float) -> float:
        """Predict a value."""
        return x * self.factor

    def __call__(self, x: float) -> float:
        return -x


def refusal(word, namespace, **options):
    return refusal_of(make_tools_by_name, word, namespace, **options)


def names(tools):
    return [tool.name for tool in tools]


@pytest.fixture
def registry():
    return ToolRegistry(lambda: None)


def test_the_marked_methods_of_an_object_are_tools_that_share_its_state():
    counter = Counter(10)
    tools = {tool.name: tool for tool in make_tools_by_name("counter", {"counter": counter})}
    assert list(tools) == NAMES
    assert [tools["add"].function(n=n) for n in (1, 2)] == [11, 13]
    assert tools["outer_class"].function() == tools["inner_class"].function() == "Counter"
    assert tools["outer_static"].function(x=3) == tools["inner_static"].function(x=3) == 3
    assert tools["clear"].options.timeout == "3s"
    assert list(tools["add"].info.input_schema["properties"]) == ["n"]


def test_inherited_methods_count_and_an_overridden_one_as_it_is_overridden():
    class More(Counter):
        @mcp_tool
        def more(self):
            """More."""

        def reset(self):
            """No tool any more."""

        @mcp_tool
        def add(self, n: int, twice: bool) -> int:
            """Add, or twice."""

    assert list(find_marked_methods(More)) == [
        name for name in ["add", *NAMES[2:], "more"] if name != "clear"
    ]
    (add,) = [tool for tool in make_tools_by_name("m", {"m": More()}) if tool.name == "add"]
    assert "twice" in add.info.input_schema["properties"]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("statistics.mean", "mean"),
        ("model.predict", "predict"),
        ("model", "model"),
        ("alias", "alias"),
        ("part", "part"),
        ("box.model.predict", "predict"),
    ],
)
def test_a_tool_is_called_as_the_last_part_of_what_names_it(word, name):
    model = Model()
    namespace = {
        "statistics": statistics,
        "model": model,
        "alias": statistics.mean,
        "part": functools.partial(statistics.fmean, weights=None),
        "box": SimpleNamespace(model=model),
    }
    (tool,) = make_tools_by_name(word, namespace)
    assert tool.name == name
    (tool,) = make_tools_by_name(word, namespace, ToolOptions(name="other"))
    assert tool.name == "other"


def test_a_partial_offers_what_is_left_and_is_named_in_messages():
    def base(a: int, **rest):
        """Base."""

    (tool,) = make_tools_by_name("rain", {"rain": functools.partial(Model().predict, x=1.0)})
    assert tool.info.input_schema["properties"] == {}
    assert tool.info.description == "Predict a value."
    assert "`rain`: clients cannot see" in refusal("rain", {"rain": functools.partial(base, 1)})


def test_a_method_follows_the_variable_that_holds_its_object(registry):
    namespace = {"model": Model()}
    registry.add(*make_tools_by_name("model.predict", namespace, ToolOptions(title="T")))
    assert registry.follow(namespace) == ()
    namespace["model"] = Model(10)
    assert registry.follow(namespace) == ()
    (tool,) = registry.tools
    assert (tool.name, tool.info.title, tool.function(x=1.0)) == ("predict", "T", 10)
    namespace["model"] = 5
    (said,) = registry.follow(namespace)
    assert said == (
        "The tool 'predict' is gone: `model` has no attribute `predict`: "
        "`dir(model)` lists what it has."
    )
    assert registry.tools == ()


def test_attributes_are_not_looked_at_while_the_variable_holds_the_same(registry):
    asked = []

    class Proxy:
        def __getattr__(self, name):
            asked.append(name)
            return lambda x: x

    namespace = {"proxy": Proxy()}
    registry.add(*make_tools_by_name("proxy.f", namespace))
    before = len(asked)
    registry.follow(namespace)
    assert len(asked) == before


def test_the_tools_of_an_object_follow_its_variable(registry):
    class Other:
        @mcp_tool
        def add(self, x: str):
            """Another."""

    namespace = {"counter": Counter(), "f": statistics.mean}
    registry.add(*make_tools_by_name("counter", namespace), *make_tools_by_name("f", namespace))
    namespace["counter"] = Counter(40)
    assert registry.follow(namespace) == ()
    assert names(registry.tools) == [*NAMES, "f"]
    assert registry.get("add").function(n=2) == 42
    namespace["counter"] = Other()
    (said,) = registry.follow(namespace)
    assert said.endswith("are gone: `counter` now offers `add`.")
    assert names(registry.tools) == ["add", "f"]
    del namespace["counter"]
    assert registry.follow(namespace) == ()
    assert names(registry.tools) == ["f"]


@pytest.mark.parametrize("value", [5, statistics.mean, MagicMock(), Model(), None])
def test_tools_of_an_object_that_is_something_else_now_go_in_one_sentence(registry, value):
    namespace = {"counter": Counter()}
    registry.add(*make_tools_by_name("counter", namespace, prefix="c_"))
    namespace["counter"] = value
    (said,) = registry.follow(namespace)
    assert said.startswith("The tools 'c_add', 'c_clear'")
    assert said.endswith(
        f"are gone: `counter` is now of type {type(value).__name__}, which has no methods marked "
        "`@mcp_tool`."
    )
    assert registry.tools == ()


def test_a_class_of_tools_makes_one_object_and_stays_a_class():
    decorated = mcp_tools(prefix="c_")(type("C", (Counter,), {}))
    assert isinstance(decorated.mcp_instance, decorated)
    tools = make_tools_by_name("C", {"C": decorated})
    assert names(tools) == [f"c_{name}" for name in NAMES]
    tools[0].function(n=5)
    assert decorated.mcp_instance.total == 5
    assert names(make_tools_by_name("C", {"C": decorated}, prefix=""))[0] == "add"


def test_classes_of_tools_are_found_once_among_anything():
    class Lazy:
        def __getattribute__(self, name):
            raise AssertionError(name)

    decorated = mcp_tools(type("C", (Counter,), {}))
    sub = type("Sub", (decorated,), {})
    values = {"lazy": Lazy(), "C": decorated, "Alias": decorated, "Sub": sub, "mock": MagicMock()}
    assert find_classes_of_tools(values.items()) == ["C"]


def test_decorating_without_a_notebook_only_marks():
    @mcp_tools
    class Odd:
        @mcp_tool
        def f(self, **options):
            """Cannot be a tool."""

    assert "`**options`" in refusal("Odd", {"Odd": Odd})


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("missing", "`missing` is not defined in this notebook; run the cell that defines it."),
        ("countr", "Did you mean `counter`?"),
        ("missing.f", "run the cell that defines or imports it."),
        ("model.nothing", "`model` has no attribute `nothing`"),
        ("counter.broken", "`counter.broken` fails: RuntimeError."),
        ("Counter", "`Counter` is a class with tools: add `@mcp_tools` above it, or create an"),
        ("number", "'number' is not a function, but of type int"),
        ("builtins.max", "`max`"),
    ],
)
def test_a_word_that_names_no_tool_is_refused_in_a_sentence(word, said):
    namespace = {"counter": Counter(), "Counter": Counter, "model": Model(), "number": 5}
    assert said in refusal(word, namespace | {"builtins": builtins})


def test_options_that_an_object_or_a_function_cannot_have_are_refused():
    namespace = {"c": Counter(), "f": statistics.mean}
    assert "write the options of each at its method" in refusal(
        "c", namespace, options=ToolOptions(title="T")
    )
    assert "`--prefix` is for an object" in refusal("f", namespace, prefix="x")
    assert "`prefix` must consist of letters" in refusal("c", namespace, prefix="a b")


def test_an_attribute_of_a_class_that_raises_hides_no_method():
    class Trap:
        def __getattribute__(self, name):
            raise RuntimeError(name)

    class Odd:
        trap = Trap()
        mock = MagicMock()

        @mcp_tool
        def f(self):
            """F."""

    assert names(make_tools_by_name("odd", {"odd": Odd()})) == ["f"]
