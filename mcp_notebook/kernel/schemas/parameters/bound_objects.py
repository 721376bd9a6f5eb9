"""Parameters that get an object of the notebook: a frame, a model, an axis, a connection.

Runs in the user's kernel, on any thread; `find_object_uses` and `describe_way`, which are pure,
also in the process of ``mcp-notebook check``. A required parameter is bound if it has no type that
JSON can express, and a variable of its name holds an object when the tool is declared. Each call
reads the variable again. No code of the values' classes runs here.
"""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from mcp_notebook.errors import CallError
from mcp_notebook.kernel.safe.libraries import get_module_name, get_mro
from mcp_notebook.kernel.safe.text import find_member

_VALUES = frozenset(
    (
        *("builtins", "datetime", "uuid", "enum", "re", "functools", "zoneinfo", "collections"),
        *("io", "_io", "itertools", "_csv", "array", "ipywidgets.widgets.widget"),
    )
)
"""Modules whose classes hold plain values, functions or lines, not the author's objects."""
_ARRAYS = (("dtype", "shape"), ("tolist",), ("to_pylist", "type"))
"""Attributes of the classes of arrays and series, for which clients send lists."""
_VALUE_METHODS = ("__float__", "__fspath__", "__name__")
"""Attributes of the classes of numbers (also symbols), paths, and functions written in C."""
_JSON = (str, bool, int, float, dict, list, type(None))
_PLAIN_ATTRIBUTES = frozenset(chain.from_iterable(map(dir, _JSON)))


def is_object(value: Any) -> bool:
    """Return whether a value is an object that no JSON stands for.

    Plain values, containers, arrays, series, functions, classes and modules are none.
    """
    kind = type(value)
    modules = {get_module_name(parent) for parent in get_mro(kind)[:-1]}
    return not (
        modules & _VALUES
        or any(module.startswith("pandas._libs") for module in modules)  # pandas' scalars
        or any(all(find_member(kind, name) for name in names) for names in _ARRAYS)
        or any(find_member(kind, name) for name in _VALUE_METHODS)
    )


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


def find_object_uses(body: ast.AST, names: Collection[str]) -> dict[str, str]:
    """Return the parameters that code uses as objects, with the use: ``df.describe``.

    Args:
        body: The function, or its code.
        names: Parameters that have no type.
    """
    uses: dict[str, str] = {}
    assigned = set()
    for node in ast.walk(body):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                assigned.add(name)  # from something else: `df = pd.DataFrame(df)`
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if name in names and attribute not in _PLAIN_ATTRIBUTES:
                    uses.setdefault(name, f"{name}.{attribute}")
    return {name: use for name, use in uses.items() if name not in assigned}


def describe_way(function: str, parameters: Iterable[str], objects: Collection[str]) -> str:
    """Return how to write a tool that passes objects of the notebook to a function.

    Args:
        function: Its name.
        parameters: The names of all its parameters that clients see.
        objects: Those that clients cannot send.
    """
    kept = ", ".join(name for name in parameters if name not in objects)
    passed = ", ".join(f"my_{name}" if name in objects else name for name in parameters)
    return f"`%%mcp_tool my_{function}({kept})` with the line `{function}({passed})`"


def explain_sent(
    error: BaseException, arguments: Mapping[str, Any], schema: Mapping[str, Any], function: str
) -> str | None:
    """Return a sentence for an error about a value that was sent in place of an object.

    Args:
        error: What the function raised.
        arguments: As the client sent them.
        schema: Their schema.
        function: The function's name.
    """
    if not isinstance(error, AttributeError) or type(error.obj) not in _JSON:
        return None
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in list_untyped(schema):
        if name in arguments and arguments[name] is error.obj:
            way = describe_way(function, properties, [name])
            return (
                f"`{name}` has to be an object of the notebook, which clients cannot send. Ask the "
                f"user for a tool that has it: {way}."
            )
    return None


def list_untyped(schema: Mapping[str, Any]) -> Sequence[str]:
    """Return the required parameters of a schema that take any value."""
    return [
        name
        for name, item in schema.get("properties", {}).items()
        if name in schema.get("required", ())
        and item is not False
        and not set(item if isinstance(item, dict) else {}) - {"title", "description"}
    ]
