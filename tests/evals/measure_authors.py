"""Measures how many of the authors' functions are good tools as they are.

``python tests/evals/measure_authors.py`` prints a table by kind and each function that is not good.
A real kernel runs the cells of the functions as a notebook would, and a real client calls each.
"""

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import nbformat

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "e2e")]
sys.path += [str(Path(__file__).parents[1])]  # for a run outside of pytest

from authors_functions import FUNCTIONS, OBJECTS, SETUP, Function
from clients import LOAD, connected
from listing import list_tools
from live import LiveKernel, live_kernel
from mcp import Client
from mcp_types import CallToolResult, Tool

from mcp_notebook.check.schemas import PROVIDERS

GOOD, SAID, UNSAID, WRONG = OUTCOMES = ("good", "said", "unsaid", "wrong")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
NUMBERS = (
    re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"),
    re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
)
"""Also those with separators, which may be several numbers in a list."""
ROUNDED = 1e-3
"""What a table may lose of a number, as a share of it."""


@dataclass(frozen=True)
class Outcome:
    """What became of one call."""

    function: Function
    outcome: str
    """One of `OUTCOMES`: a good answer; an error, or no answer, with the right sentence; an error
    without it; an answer that is wrong."""
    text: str
    """What the client was told."""


@dataclass(frozen=True)
class Shares:
    """How many of the functions are of a kind, in per cent."""

    unhinted: float
    undocumented: float
    with_objects: float
    number_defaults: float
    other_alphabets: float
    tuples: float
    prints: float
    plots: float
    stars: float


def measure_shares() -> Shares:
    """Return what the functions are like."""
    found = Counter[str]()
    nodes = [node for function in FUNCTIONS for node in _find_function(function)]
    for node in nodes:
        source = ast.unparse(node)
        arguments = [*node.args.args, *filter(None, [node.args.vararg])]
        defaults = node.args.defaults
        late = node.args.args[len(node.args.args) - len(defaults) :]
        found["unhinted"] += not (node.returns or any(each.annotation for each in arguments))
        found["undocumented"] += ast.get_docstring(node) is None
        found["with_objects"] += any(each.arg in OBJECTS for each in arguments)
        found["number_defaults"] += any(
            each.annotation is None
            and isinstance(value, ast.Constant)
            and type(value.value) in (int, float)
            for each, value in zip(late, defaults, strict=True)
        )
        found["other_alphabets"] += any(not each.arg.isascii() for each in arguments)
        found["tuples"] += any(
            isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple)
            for each in ast.walk(node)
        )
        found["prints"] += "print(" in source
        found["plots"] += "plt." in source or ".plot" in source
        found["stars"] += node.args.vararg is not None
    return Shares(**{name: 100 * found[name] / len(nodes) for name in Shares.__annotations__})


def _find_function(function: Function) -> Iterator[ast.FunctionDef]:
    for node in ast.parse(function.plain).body:
        if isinstance(node, ast.FunctionDef) and (node.name == function.name or function.tool):
            yield node


async def measure() -> list[Outcome]:
    """Declare all functions in a kernel, call each, and return what became of it."""
    expected = compute_answers()
    with tempfile.TemporaryDirectory(prefix="mcpnb-") as folder:
        home = Path(folder)
        path = home / "authors.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=list(_write_cells())), path)
        with live_kernel(home, notebook=str(path)) as kernel:
            shown = _declare(kernel)
            async with connected(home, "auto", "stdio") as client:
                tools = {tool.name: tool for tool in await list_tools(client)}
                notebook = Notebook(kernel, client, tools, shown)
                return [await notebook.ask(each, expected[each.name]) for each in FUNCTIONS]


def _write_cells() -> Iterator[nbformat.NotebookNode]:
    """Yield the cells of the notebook's file, as the author has saved it."""
    declarations = (cell for each in FUNCTIONS for cell in each.declaration)
    afterwards = (each.after for each in FUNCTIONS if each.after)
    yield from map(nbformat.v4.new_code_cell, (*SETUP, LOAD, *declarations, *afterwards))


def _declare(kernel: LiveKernel) -> dict[str, str]:
    """Run all cells; return what they showed, by the names of functions."""
    for cell in (*SETUP, LOAD):
        kernel.ok(cell)
    shown: dict[str, str] = {}
    last = ""
    for function in FUNCTIONS:
        if function.declaration:
            last = "\n".join(kernel.run(cell).text for cell in function.declaration)
        shown[function.name] = last
    for function in FUNCTIONS:
        if function.after:
            kernel.ok(function.after)
    return shown


@dataclass(frozen=True)
class Notebook:
    """A notebook in which all functions are declared, and a client of it."""

    kernel: LiveKernel
    client: Client
    tools: dict[str, Tool]
    shown: dict[str, str]
    """What the cells of each function's declaration showed."""

    async def ask(self, function: Function, expected: Sequence[Any] | None) -> Outcome:
        """Call a function as an assistant would; `expected` must be in the answer."""
        shown = self.shown[function.name]
        tool = self.tools.get(function.name)
        if tool is None:
            return _judge(function, shown, f"No tool. {shown}", None)
        refused = _find_refused(tool)
        if refused:
            return _judge(function, shown, f"An assistant's API refuses {refused}.", None)
        result = await self.client.call_tool(function.name, _rename(function, tool))
        text = "\n".join(block.text for block in result.content if block.type == "text")
        said = f"{shown}\n{tool.description}\n{text}"
        if result.is_error:
            return _judge(function, said, text, None)
        if expected is None:
            said += self.kernel.run(f"%mcp check {function.name}").text
        return _judge(function, said, text, _is_good(function, result, text, expected))


def _judge(function: Function, said: str, text: str, is_good: bool | None) -> Outcome:
    """Return the outcome; `is_good` is None where there was no answer."""
    if is_good:
        outcome = GOOD
    elif function.sentence and re.search(function.sentence, said, re.DOTALL):
        outcome = SAID
    else:
        outcome = UNSAID if is_good is None else WRONG
    return Outcome(function, outcome, " ".join(text.split()))


def _find_refused(tool: Tool) -> str:
    """Return a parameter or place in a schema that an assistant's API refuses, or nothing."""
    for name in tool.input_schema.get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            return name
    refusals = (each for find in PROVIDERS.values() for each in find(tool.input_schema))
    return next((f"{each.place} {each.reason}" for each in refusals), "")


def _rename(function: Function, tool: Tool) -> dict[str, Any]:
    """Return the arguments under the names that clients know, which have the parameters' order."""
    if all(map(str.isascii, function.sent)):
        return function.sent
    (node,) = _find_function(function)
    published = list(tool.input_schema.get("properties", {}))
    order = [each.arg for each in node.args.args]
    return {published[order.index(name)]: value for name, value in function.sent.items()}


# -- what is right ---------------------------------------------------------------------------------


def compute_answers() -> dict[str, Any]:
    """Return what must be in each answer: the function's value in plain Python, taken apart."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    folder = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        os.chdir(place)
        notebook: dict[str, Any] = {"__name__": "authors"}
        try:
            for cell in SETUP:
                exec(cell, notebook)
            for function in FUNCTIONS:
                exec(function.plain, notebook)
            return {
                each.name: None
                if each.answer is None
                else list(_flatten(eval(each.answer, notebook)))
                for each in FUNCTIONS
            }
        finally:
            os.chdir(folder)
            plt.close("all")
            notebook["conn"].close()


def _flatten(value: Any) -> Iterator[Any]:
    """Yield the numbers and texts in a value."""
    import numpy as np
    import pandas as pd

    match value:
        case pd.DataFrame():
            yield from map(str, value.columns)
            yield from _flatten(value.to_numpy())
        case pd.Series():
            yield from _flatten([*value.index, *value])
        case np.ndarray():
            yield from _flatten(value.tolist())
        case dict():
            yield from _flatten([*value.keys(), *value.values()])
        case list() | tuple():
            for item in value:
                yield from _flatten(item)
        case np.generic():
            yield value.item()
        case pd.Timestamp():
            yield str(value.date())
        case _:
            yield value


def _is_good(
    function: Function, result: CallToolResult, text: str, expected: Sequence[Any] | None
) -> bool:
    if expected is None or ADDRESS.search(text):
        return False
    pictures = sum(block.type == "image" for block in result.content)
    found = (number for pattern in NUMBERS for number in pattern.findall(text))
    numbers = [float(number.replace(",", "")) for number in found]
    return pictures >= function.pictures and all(_has(text, numbers, each) for each in expected)


def _has(text: str, numbers: Sequence[float], value: Any) -> bool:
    match value:
        case bool():
            return str(value).lower() in text.lower()
        case int() | float():
            return any(abs(each - value) <= ROUNDED * max(abs(value), 0.1) for each in numbers)
        case _:
            return str(value) in text


# -- a table ---------------------------------------------------------------------------------------


def write_table(outcomes: Sequence[Outcome]) -> str:
    """Return the figures by kind, and each function that is not good."""
    kinds = dict.fromkeys(each.function.kind for each in outcomes)
    lines = [f"{'':42}" + "".join(f"{name:>8}" for name in OUTCOMES)]
    for kind in (*kinds, "all"):
        found = Counter(each.outcome for each in outcomes if kind in (each.function.kind, "all"))
        lines.append(f"{kind:42}" + "".join(f"{found[name]:8}" for name in OUTCOMES))
    lines.append("")
    lines += [
        f"{each.outcome}: {each.function.kind}: {each.function.name}: {each.text[:300]}"
        for each in outcomes
        if each.outcome != GOOD
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(write_table(anyio.run(measure)))
