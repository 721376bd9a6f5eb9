"""Public functions of pandas, scikit-learn and statsmodels: well described, and they only compute.

A finding about one of them is, at first, a false alarm.
"""

import importlib
import inspect
import textwrap

import pytest
from linted import make_subject

from mcp_notebook.check.lint.rules import lint_tools
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.tools.declared_tool import make_tool

MODULES = {
    "pandas": ["pandas"],
    "sklearn": ["sklearn.metrics", "sklearn.preprocessing", "sklearn.model_selection"],
    "statsmodels": [
        *("statsmodels.tsa.stattools", "statsmodels.stats.proportion"),
        *("statsmodels.stats.weightstats", "statsmodels.stats.diagnostic"),
    ],
}
LIBRARIES = [
    pytest.param("pandas", marks=pytest.mark.slow),
    *(
        pytest.param(name, marks=[pytest.mark.slow, pytest.mark.needs(name)])
        for name in ("sklearn", "statsmodels")
    ),
]
FILES = ("read_", "test", "show_versions")
"""Beginnings of the names of functions that open what they are told to, or start programs."""
TRUE = "their descriptions are the same"
"""What is right about two pairs of scikit-learn's functions."""


def list_functions(library):
    """Return the library's own public functions, by name."""
    functions = {}
    for name in MODULES[library]:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", dir(module)):
            function = vars(module).get(public)
            is_own = inspect.isfunction(function) and function.__module__.startswith(library)
            if is_own and not public.startswith(("_", *FILES)):
                functions[function.__name__] = function
    return functions


def list_wrong(findings):
    return [
        f"{each.tool}: {each.rule}: {each.reason}"
        for each in findings
        if each.severity != "note" and TRUE not in each.reason
    ]


@pytest.mark.parametrize("library", LIBRARIES)
def test_their_words_and_schemas_give_an_alarm_for_one_of_fifty_at_most(library):
    tools = []
    for function in list_functions(library).values():
        try:
            tools.append(make_tool(function))
        except DefinitionError:  # `*args`, say, of which no schema can be made
            continue
    assert len(tools) > 30
    wrong = list_wrong(lint_tools(make_subject([], tools)))
    assert len(wrong) <= max(1, len(tools) / 50), "\n".join(wrong)


@pytest.mark.parametrize("library", LIBRARIES)
def test_their_code_gives_an_alarm_for_one_of_fifty_at_most(library):
    functions = list_functions(library)
    cells = [
        f"%%mcp_tool --read-only\n{textwrap.dedent(inspect.getsource(function))}"
        for function in functions.values()
    ]
    wrong = list_wrong(lint_tools(make_subject(cells, [])))
    assert len(wrong) <= max(1, len(functions) / 50), "\n".join(wrong)
