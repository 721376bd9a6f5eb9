"""The libraries that a value's classes come from, and the rules that are asked about it."""

from fractions import Fraction

import pytest

from mcp_notebook.kernel.results.value_rules import Rule, find_libraries, match_rules

HERE = __name__.partition(".")[0]


class OfTwo(Fraction):
    pass


class Proxy:
    """Claims to be of another class, as proxies do."""

    def __init__(self, claimed):
        self.claimed = claimed

    @property
    def __class__(self):
        return self.claimed


class Mute(type):
    """Classes that do not tell their modules."""

    def __getattribute__(cls, name):
        raise RuntimeError(name)


def rule(name, **fields):
    return Rule(values=name, content="", render=lambda *_: [], **fields)


@pytest.mark.parametrize(
    ("value", "libraries"),
    [
        (object(), set()),
        (1, {"builtins"}),
        (OfTwo(1), {HERE, "fractions", "numbers"}),
        (Proxy(dict), {HERE, "builtins"}),
        (Proxy("no class"), {HERE}),
    ],
)
def test_libraries_are_the_modules_of_all_classes_of_a_value(value, libraries):
    assert find_libraries(value) == libraries


def test_a_subclass_in_a_module_of_the_users_is_of_the_library_too():
    pandas = pytest.importorskip("pandas")

    class Mine(pandas.DataFrame):
        pass

    assert {"pandas", HERE} <= find_libraries(Mine())


def test_a_class_that_does_not_tell_its_module_is_known_all_the_same():
    class Silent(metaclass=Mute):
        pass

    assert find_libraries(object.__new__(Silent)) == {HERE}


def test_a_rule_of_another_library_is_not_asked():
    rules = (
        rule("other", libraries=frozenset({"pandas"}), accepts=lambda _: pytest.fail("asked")),
        rule("refuses", accepts=lambda _: False),
        rule("first", libraries=frozenset({"builtins", "pandas"})),
        rule("second"),
    )
    assert [match.values for match in match_rules(rules, 1)] == ["first", "second"]
