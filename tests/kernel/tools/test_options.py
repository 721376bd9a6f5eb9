"""What may be said about a tool, and what is refused."""

import math
from concurrent.futures import Executor
from dataclasses import fields
from typing import get_type_hints

import pytest

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.options import (
    ToolKeywords,
    ToolOptions,
    check_options,
    parse_duration,
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"run": "process"}, "`run` must be 'main', 'thread' or 'fork', not 'process'"),
        ({"run": []}, "`run` must be"),
        ({"run": "fork"}, "add `read_only=True` (`--read-only`), or write `run='thread'`"),
        ({"timeout": 0}, "`timeout` must be a time"),
        ({"timeout": "soon"}, "`timeout` must be a time"),
        ({"timeout": math.inf}, "`timeout` must be a time"),
        ({"timeout": 10**400}, "`timeout` must be a time"),
        ({"max_concurrency": 0}, "`max_concurrency` must be a whole number"),
        ({"max_concurrency": "2"}, "not '2'"),
        ({"max_concurrency": 1.5}, "not 1.5"),
        ({"max_concurrency": True}, "not True"),
        ({"errors": "mask"}, "or 'masked', not 'mask'."),
        ({"errors": []}, "`errors` must be 'full', 'short' or 'masked', not []."),
        ({"executor": 3}, "concurrent.futures.Executor"),
        ({"confirm": "yes"}, "`confirm` must be True or False, not 'yes'"),
        ({"requires": ["forms"]}, "has 'forms'; it can be 'elicitation', 'roots', 'sampling' or"),
        ({"requires": [3]}, "has 3; it can be"),
        ({"requires": "elicitation"}, "must be a list of clients' capabilities"),
        ({"requires": ["elicitation"], "run": "fork", "read_only": True}, "cannot ask the user"),
        ({"task": 1}, "`task` must be True, False or 'only', not 1"),
        ({"task": "always"}, "`task` must be True, False or 'only', not 'always'"),
        ({"flatten": 1}, "`flatten` must be True or False"),
        ({"cache": 10**400, "read_only": True}, "`cache` must be a time"),
        ({"cache": 60}, "read_only=True"),
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused_in_one_sentence(options, said):
    with pytest.raises(DefinitionError) as refused:
        check_options(ToolOptions(**options), "rain")
    assert "`rain`" in str(refused.value)
    assert said in str(refused.value)


def test_a_call_goes_into_a_fork_or_to_an_executor():
    with pytest.raises(DefinitionError, match=r"`rain`.*remove one of them"):
        check_options(ToolOptions(run="fork", read_only=True, executor=Executor()), "rain")


def test_only_a_tool_that_names_a_time_has_its_results_reused():
    assert ToolOptions(cache="1min", read_only=True).cache_time == 60
    assert ToolOptions().cache_time is None
    assert ToolOptions(cache="ephemeral").cache_time is None


def test_the_keywords_are_the_fields_with_their_types():
    names = [item.name for item in fields(ToolOptions)]
    keywords, options = get_type_hints(ToolKeywords), get_type_hints(ToolOptions)
    assert keywords == {name: options[name] for name in names}
    assert ToolKeywords.__required_keys__ == frozenset()


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        *((90, 90), ("90", 90), ("500ms", 0.5), (" 1.5 S ", 1.5)),
        *(("5min", 300), ("5m", 300), ("2h", 7200)),
    ],
)
def test_a_time_is_seconds_or_has_its_unit(duration, expected):
    assert parse_duration(duration) == expected


def test_a_system_without_fork_is_told_what_to_write(monkeypatch):
    monkeypatch.delattr("os.fork")
    with pytest.raises(DefinitionError, match=r"needs Linux or macOS.*`--run thread`"):
        check_options(ToolOptions(run="fork", read_only=True), "rain")


def test_other_objects_than_executors_are_refused_with_how_to_use_them():
    with pytest.raises(DefinitionError, match=r"run='thread'.*pool\.submit\(work, x\)\.result"):
        check_options(ToolOptions(executor=object()), "tool")
