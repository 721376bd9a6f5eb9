"""Parameters that get an object of the notebook: a frame, a model, an axis, a connection.

Runs in the user's kernel, on any thread; `find_objects`, which is pure, also in the process of
``mcp-notebook check``. A required parameter is bound if it has no type that JSON can express, and a
variable of its name holds an object when the tool is declared. Each call reads the variable again.
No code of the values' classes runs here.
"""

import ast
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from mcp_notebook.errors import CallError
from mcp_notebook.kernel.safe.libraries import get_module_name, get_mro
from mcp_notebook.kernel.schemas.parameters.callables import NO_DEFAULT, HintedParameter
from mcp_notebook.kernel.schemas.parameters.unhinted import is_array_attribute

_VALUES = frozenset(
    (
        *("builtins", "datetime", "uuid", "enum", "re", "functools", "zoneinfo", "collections"),
        *("io", "_io", "itertools", "_csv", "array", "ipywidgets.widgets.widget"),
        "IPython.core.autocall",  # `exit` and `quit`
    )
)
"""Modules whose classes hold plain values, functions or lines, not the author's objects."""
_VALUE_MEMBERS: Sequence[Collection[str]] = (
    *({"dtype", "shape"}, {"tolist"}, {"to_pylist", "type"}),
    *({"__float__"}, {"__fspath__"}, {"__name__"}),
)
"""Attributes of the classes of arrays and series, for which clients send lists; of numbers (also
symbols), of paths, and of functions written in C."""
_JSON = (str, bool, int, float, dict, list, type(None))
_WRITTEN = (str, bool, int, float, type(None))
"""Types of defaults that a line repeats; a parameter with another one keeps it."""
_UNWRITABLE = ("inf", "-inf", "nan")
"""Floats that are names of nothing where a line repeats them."""
_PLAIN_ATTRIBUTES = frozenset(chain.from_iterable(map(dir, _JSON)))


def is_object(value: Any) -> bool:
    """Return whether a value is an object that no JSON stands for.

    Plain values, containers, arrays, series, functions, classes and modules are none.
    """
    parents = get_mro(type(value))[:-1]
    modules = {get_module_name(parent) for parent in parents}
    members = {name for parent in parents for name in vars(parent)}
    return not (
        modules & _VALUES
        or any(module.startswith("pandas._libs") for module in modules)  # pandas' scalars
        or any(members.issuperset(names) for names in _VALUE_MEMBERS)
    )


def is_compared(body: ast.AST, name: str) -> bool:
    """Return whether code compares a name, or looks something up by it, as one does with values."""
    for node in ast.walk(body):
        values: list[ast.expr] = []
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot):
            values = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            values = [node.slice]
        if any(isinstance(value, ast.Name) and value.id == name for value in values):
            return True
    return False


def read_objects(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the variables hold now.

    Raises:
        CallError: One of them was deleted.
    """
    try:
        return {name: namespace[name] for name in names}
    except KeyError as error:
        name = error.args[0]
        raise CallError(
            f"The tool uses the notebook's variable `{name}`, which was deleted. Ask the user to "
            f"run the cell that defines `{name}` again."
        ) from None


def find_objects(body: ast.AST, names: Collection[str]) -> dict[str, str]:
    """Return the parameters that are used as objects, and why clients cannot send them.

    Args:
        body: The function, or its code.
        names: The required parameters that take any value.
    """
    nodes = list(ast.walk(body))
    uses = {
        node.value.id: f"`{ast.unparse(node)}`"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        and node.attr not in _PLAIN_ATTRIBUTES
        and not is_array_attribute(node.attr)  # for these, lists can be sent
    }
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            uses.pop(node.id, None)  # set from what is sent: `df = pd.DataFrame(df)`
    return {name: f"Clients cannot send `{name}`, an object ({use})." for name, use in uses.items()}


def describe_way(
    function: str, parameters: Iterable[HintedParameter], objects: Collection[str]
) -> str:
    """Return what its author can do about a function that takes objects.

    Args:
        function: Its name.
        parameters: Its own.
        objects: Those that clients cannot send.
    """
    required, optional, passed, is_by_name = [], [], [], False
    for item in parameters:
        name, default = item.name, item.default
        is_kept = item.seen_as in ("argument", "injected") and name not in objects
        is_optional = default is not NO_DEFAULT
        is_written = type(default) in _WRITTEN and repr(default) not in _UNWRITABLE
        is_left = is_optional and not (is_kept and is_written)
        is_by_name |= is_left or item.kind is inspect.Parameter.KEYWORD_ONLY
        if is_left:
            continue
        if item.seen_as == "injected":
            required.append(f"{name}: Context")
        elif is_kept and is_optional:
            optional.append(f"{name}={default!r}")
        elif is_kept:
            required.append(name)
        value = f"my_{name}" if name in objects else name
        passed.append(f"{name}={value}" if is_by_name else value)
    word = function.rpartition(".")[2]
    return (
        f"Declare the tool once the notebook has such an object named `{min(objects)}`, or "
        f"write `%%mcp_tool my_{word}({', '.join(required + optional)})` with the line "
        f"`{function}({', '.join(passed)})`."
    )


def explain_sent(
    error: AttributeError,
    untyped: Mapping[str, Any],
    describe: Callable[[Collection[str]], str],
) -> str | None:
    """Return sentences for an error about a value that was sent in place of an object.

    Args:
        error: What the function raised.
        untyped: What the client sent for the parameters that take any value.
        describe: `describe_way` of the function.
    """
    for name, value in untyped.items() if type(error.obj) in _JSON else ():
        if value is error.obj and value is not None:
            text = f"Clients cannot send `{name}`, an object of the notebook."
            return f"{text} Tell the user: {describe([name])}"
    return None
