"""The registry: what follows the notebook's variables, what is announced, why tools are gone."""

from functools import lru_cache, wraps
from unittest.mock import MagicMock

import pytest

from mcp_notebook import mcp_tool
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.attribute_tools import make_tools_by_name
from mcp_notebook.kernel.tools.declared_tool import make_tool
from mcp_notebook.kernel.tools.icons import MAX_ICONS
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.kernel.tools.tool_registry import (
    MAX_ICON_CHARS,
    Drop,
    DroppedTools,
    ToolRegistry,
)

ICON = "data:image/png;base64," + "A" * 87_000


@pytest.fixture
def changes():
    return []


@pytest.fixture
def registry(changes):
    return ToolRegistry(lambda: changes.append(1))


def names(registry):
    return [tool.name for tool in registry.tools]


def reasons(registry):
    return {name: dropped.reason for name, dropped in registry.dropped.items()}


def make_function(text="First."):
    def f(x: int) -> int:
        return x

    f.__doc__ = text
    return f


def declare(registry, namespace, *variables, **options):
    """Declare tools in a cell that then ends."""
    chosen = ToolOptions(**options) if options else None
    registry.add(*(make_tool(namespace[name], chosen, variable=name) for name in variables))
    assert registry.follow(namespace) == ()


class Counter:
    @mcp_tool
    def add(self, n: int):
        """Add."""

    @mcp_tool
    def clear(self):
        """Clear."""


class OnlyAdds:
    @mcp_tool
    def add(self, n: int):
        """Add."""


# -- declared and removed --------------------------------------------------------------------------


def test_a_tool_of_the_same_name_takes_the_place_of_the_old_one(registry, changes):
    namespace = {"a": make_function(), "b": make_function()}
    declare(registry, namespace, "a", "b")
    new = make_tool(make_function("Second."), variable="a")
    registry.add(new)
    assert names(registry) == ["a", "b"]
    assert registry.get("a") is new
    assert len(changes) == 2


def test_a_tool_that_is_gone_is_not_replaced(registry):
    old, new = make_tool(make_function()), make_tool(make_function("Second."))
    registry.add(old)
    registry.replace(old, new)
    assert registry.get("f") is new
    registry.remove("f")
    registry.replace(new, old)
    assert registry.tools == ()


def test_a_batch_is_announced_once_at_its_end(registry, changes):
    with registry.batch():
        declare(registry, {"a": make_function()}, "a")
        declare(registry, {"b": make_function()}, "b")
        assert changes == []
    assert len(changes) == 1


def test_icons_that_are_too_large_together_are_refused_and_nothing_is_added(registry):
    def add(name, icons=(ICON,) * MAX_ICONS):
        registry.add(make_tool(make_function(), ToolOptions(name=name, icons=[*icons])))

    fitting = [f"t{number}" for number in range(MAX_ICON_CHARS // (MAX_ICONS * len(ICON)))]
    for name in (*fitting, "t0"):  # what is replaced does not count
        add(name)
    with pytest.raises(DefinitionError, match="together, more than 16,777,216: use smaller ones"):
        add("too_many")
    add("plain", icons=())
    assert names(registry) == [*fitting, "plain"]


# -- following variables ---------------------------------------------------------------------------


def test_a_tool_follows_its_variable_with_its_options_and_its_place(registry, changes):
    namespace = {"a": make_function(), "b": make_function()}
    declare(registry, namespace, "a", title="T")
    declare(registry, namespace, "b")
    namespace["a"] = make_function("Second.")
    assert registry.follow(namespace) == ()
    tool = registry.get("a")
    assert (tool.function, tool.info.description) == (namespace["a"], "Second.")
    assert tool.info.title == "T"
    assert names(registry) == ["a", "b"]
    assert len(changes) == 3


def test_a_decorated_redefinition_says_its_options_anew(registry):
    namespace = {"a": make_function()}
    declare(registry, namespace, "a", title="T")
    namespace["a"] = mcp_tool(name="c")(make_function())
    assert registry.follow(namespace) == ("The tool 'a' is gone: `a` now offers `c`.",)
    assert names(registry) == ["c"]
    assert registry.get("c").info.title is None
    assert reasons(registry) == {"a": "`a` now offers `c`."}
    assert registry.dropped["a"].new_name == "c"


def test_nothing_happens_while_the_variables_are_the_same(registry, changes):
    namespace = {"a": make_function()}
    declare(registry, namespace, "a")
    before = registry.tools
    assert registry.follow(namespace) == ()
    assert registry.tools == before
    assert len(changes) == 1


def test_the_tools_are_current_until_a_variable_of_theirs_is_rebound_or_deleted(registry):
    namespace = {"a": make_function(), "counter": Counter(), "other": 1}
    declare(registry, namespace, "a")
    registry.add(*make_tools_by_name("counter", namespace), make_tool(make_function()))
    assert registry.is_current(namespace)
    assert registry.is_current({**namespace, "other": 2})
    for changed in ({"a": make_function()}, {"a": None}, {"counter": Counter()}):
        assert not registry.is_current(namespace | changed)
    assert not registry.is_current({"counter": namespace["counter"]})
    registry.follow({"counter": namespace["counter"]})
    assert registry.is_current({"counter": namespace["counter"]})


# -- which variable a tool follows -----------------------------------------------------------------


def test_the_tools_of_a_loop_all_stay_and_the_last_follows_the_variable(registry):
    functions = [make_function(city) for city in ("a", "b", "c")]
    for function in functions:
        options = ToolOptions(name=f"rain_{function.__doc__}")
        registry.add(make_tool(function, options, variable="rain"))
    assert registry.follow({"rain": functions[-1]}) == ()
    assert [tool.function for tool in registry.tools] == functions
    assert registry.follow({"rain": make_function("New.")}) == ()
    assert [tool.info.description for tool in registry.tools] == ["a", "b", "New."]
    assert registry.follow({}) == ()
    assert names(registry) == ["rain_a", "rain_b"]


def test_the_variable_may_be_gone_when_the_cell_ends(registry):
    function = make_function()
    registry.add(make_tool(function, ToolOptions(name="a"), variable="rain"))
    assert registry.follow({}) == ()
    assert registry.follow({"rain": 5}) == ()
    assert registry.get("a").function is function


@pytest.mark.parametrize("decorate", [lru_cache, lambda function: wraps(function)(lambda x: x)])
def test_wrappers_of_one_function_are_tools_of_their_own(registry, decorate):
    rain = make_function()
    ways = [decorate(rain), decorate(rain)]
    for number, function in enumerate(ways):
        registry.add(make_tool(function, ToolOptions(name=f"rain_{number}"), variable="rain"))
    namespace = {"rain": rain, "_": ways[0], "fast": ways[1]}
    assert registry.follow(namespace) == ()
    assert [tool.function for tool in registry.tools] == ways
    assert [tool.variable for tool in registry.tools] == [None, "fast"]
    namespace["rain"] = namespace["fast"] = make_function("New.")
    registry.follow(namespace)
    assert [tool.function for tool in registry.tools] == [ways[0], namespace["fast"]]


def test_a_decorator_above_that_of_the_tool_is_followed_unless_it_is_a_tool_too(registry):
    first, second = make_function(), make_function()
    cached = {"first": lru_cache(first), "second": lru_cache(second)}
    registry.add(make_tool(first, ToolOptions(name="a"), variable="first"))
    registry.add(make_tool(second, ToolOptions(name="raw"), variable="second"))
    registry.add(make_tool(cached["second"], ToolOptions(name="cached"), variable="second"))
    assert registry.follow(cached) == ()
    functions = {tool.name: tool.function for tool in registry.tools}
    assert functions == {"a": cached["first"], "raw": second, "cached": cached["second"]}


@pytest.mark.parametrize("value", [5, make_function("Another."), MagicMock()])
def test_a_name_that_its_own_cell_binds_again_is_told(registry, value):
    function = make_function()
    registry.add(make_tool(function, variable="f"))
    (said,) = registry.follow({"f": value})
    assert said.startswith("The tool 'f' runs the function that was declared, but `f` holds")
    assert registry.get("f").function is function
    assert registry.follow({"f": value}) == ()


def test_a_registry_that_takes_over_follows_what_the_other_did(registry):
    old, new = make_function(), make_function("New.")
    declare(registry, {"a": old}, "a")
    registry.add(make_tool(old, ToolOptions(name="b"), variable="b"))  # its cell has not ended
    after = ToolRegistry(lambda: None)
    after.take_over(registry)
    assert len(after.follow({"a": new, "b": new})) == 1
    assert {tool.name: tool.function for tool in after.tools} == {"a": new, "b": old}


def test_a_tool_that_is_updated_in_its_own_cell_is_followed_like_any_other(registry):
    function = make_function()
    registry.add(make_tool(function, variable="f"))
    registry.replace(registry.get("f"), make_tool(function, ToolOptions(name="g"), variable="f"))
    assert registry.follow({"f": make_function()}) == ()
    assert registry.get("g").function is function


# -- why a tool is gone ----------------------------------------------------------------------------


class Unaskable:
    __name__ = "f"

    @property
    def __mcp_tool__(self):
        raise RuntimeError("not bound")

    def __call__(self):
        """Called."""


def unsaid(**anything):
    """P."""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, "`a` was set to a value of type int, which is not a function."),
        (unsaid, "`a`: clients cannot see what `**anything` accepts"),
        (Unaskable(), "RuntimeError: not bound"),
    ],
)
def test_a_variable_that_can_no_longer_be_a_tool_drops_it_with_a_reason(registry, value, reason):
    namespace = {"a": make_function(), "b": make_function()}
    declare(registry, namespace, "a", "b")
    namespace["a"] = value
    (warning,) = registry.follow(namespace)
    assert warning.startswith(f"The tool 'a' is gone: {reason.removeprefix('`a`: ')}")
    assert names(registry) == ["b"]
    assert list(registry.dropped) == ["a"]
    assert registry.dropped["a"].reason.startswith(reason)


def test_a_deleted_variable_drops_its_tool_without_a_warning(registry):
    namespace = {"a": make_function()}
    declare(registry, namespace, "a")
    assert registry.follow({}) == ()
    assert registry.tools == ()
    assert reasons(registry) == {"a": "`a` was deleted."}


def test_a_reason_is_kept_until_a_tool_of_that_name_is_declared(registry):
    namespace = {"a": make_function(), "b": make_function()}
    declare(registry, namespace, "a", "b")
    registry.follow({})
    assert set(registry.dropped) == {"a", "b"}
    declare(registry, namespace, "b")
    assert set(registry.dropped) == {"a"}
    registry.follow(namespace)
    assert set(registry.dropped) == {"a"}


def test_a_new_reason_is_announced_although_clients_see_the_same_tools(registry, changes):
    namespace = {"a": make_function()}
    with registry.batch():
        declare(registry, namespace, "a")
        registry.follow({})
    assert reasons(registry) == {"a": "`a` was deleted."}
    assert len(changes) == 1


def test_the_tools_of_one_object_go_in_one_sentence_and_each_has_the_reason(registry):
    namespace = {"counter": Counter()}
    registry.add(*make_tools_by_name("counter", namespace))
    namespace["counter"] = 5
    (warning,) = registry.follow(namespace)
    assert warning.startswith("The tools 'add', 'clear' are gone: `counter` is now of type int")
    assert set(registry.dropped) == {"add", "clear"}


def test_a_method_that_an_object_has_no_more_is_dropped_with_what_there_is(registry):
    namespace = {"counter": Counter()}
    registry.add(*make_tools_by_name("counter", namespace))
    namespace["counter"] = OnlyAdds()
    assert registry.follow(namespace) == ("The tool 'clear' is gone: `counter` now offers `add`.",)
    assert names(registry) == ["add"]
    assert reasons(registry) == {"clear": "`counter` now offers `add`."}


# -- what became of tools --------------------------------------------------------------------------


@pytest.fixture
def dropped():
    return DroppedTools()


def make(name, description="It."):
    return make_tool(lambda: None, ToolOptions(name=name, description=description))


@pytest.mark.parametrize(
    ("new_tools", "new_name"),
    [
        ([make("g")], "g"),
        ([make("g"), make("h", "That.")], "g"),
        ([make("g"), make("h")], None),
        ([make("h", "That.")], None),
    ],
)
def test_the_one_new_tool_with_its_description_and_schema_is_the_same_tool(
    dropped, new_tools, new_name
):
    dropped.update([Drop([make("f")], "It went.", new_tools=new_tools)], {})
    assert dropped.read()["f"].new_name == new_name


def test_tools_that_nothing_describes_are_not_the_same(dropped):
    dropped.update([Drop([make("f", "")], "It went.", new_tools=[make("g", "")])], {})
    assert dropped.read()["f"].new_name is None
