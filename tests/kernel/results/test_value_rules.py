"""Which rules are asked about a value."""

import pytest

from mcp_notebook.kernel.results.value_renderer import Rule, match_rules


def rule(name, **fields):
    return Rule(values=name, content="", render=lambda *_: [], **fields)


def test_a_rule_of_another_library_is_not_asked():
    rules = (
        rule("other", libraries=frozenset({"pandas"}), accepts=lambda _: pytest.fail("asked")),
        rule("refuses", accepts=lambda _: False),
        rule("first", libraries=frozenset({"builtins", "pandas"})),
        rule("second"),
    )
    assert [match.values for match in match_rules(rules, 1)] == ["first", "second"]
