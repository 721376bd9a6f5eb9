"""Parameters that get an object of the notebook: a frame, a model, an axis, a connection.

Runs in the user's kernel, on any thread; `explain_objects`, which is pure, also in the process of
``mcp-notebook check``. A required parameter is bound if it has no type that JSON can express, and a
variable of its name holds an object when the tool is declared. Each call reads the variable again.
No code of the values' classes runs here.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from mcp_notebook.errors import CallError
from mcp_notebook.kernel.safe.libraries import get_module_name, get_mro
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


def explain_objects(
    body: ast.AST, schema: Mapping[str, Any], function: str
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong and what to write for each parameter that is used as an object.

    Args:
        body: The function, or its code.
        schema: That of its arguments.
        function: Its name.
    """
    untyped, nodes = list_untyped(schema), list(ast.walk(body))
    uses = {
        node.value.id: f"`{ast.unparse(node)}`"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in untyped
        and node.attr not in _PLAIN_ATTRIBUTES
        and not is_array_attribute(node.attr)  # for these, lists can be sent
    }
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            uses.pop(node.id, None)  # set from what is sent: `df = pd.DataFrame(df)`
    for name, use in uses.items():
        way = describe_way(function, schema["properties"], uses)
        yield f"Clients cannot send `{name}`, an object ({use}).", way


def describe_way(function: str, parameters: Collection[str], objects: Collection[str]) -> str:
    """Return what its author can do about a function that takes objects.

    Args:
        function: Its name.
        parameters: The names of all its parameters that clients see.
        objects: Those that clients cannot send.
    """
    word = function.rpartition(".")[2]
    kept = ", ".join(name for name in parameters if name not in objects)
    passed = ", ".join(f"my_{name}" if name in objects else name for name in parameters)
    return (
        f"Declare the tool once the notebook has such an object named `{min(objects)}`, or "
        f"write `%%mcp_tool my_{word}({kept})` with the line `{function}({passed})`."
    )


def explain_sent(
    error: AttributeError, arguments: Mapping[str, Any], schema: Mapping[str, Any], function: str
) -> str | None:
    """Return sentences for an error about a value that was sent in place of an object.

    Args:
        error: What the function raised.
        arguments: As the client sent them.
        schema: Their schema.
        function: The function's name.
    """
    for name in list_untyped(schema) if type(error.obj) in _JSON else ():
        if error.obj is not None and arguments.get(name) is error.obj:
            way = describe_way(function, schema["properties"], [name])
            return f"Clients cannot send `{name}`, an object of the notebook. Tell the user: {way}"
    return None


def list_untyped(schema: Mapping[str, Any]) -> Sequence[str]:
    """Return the required parameters of a schema that take any value."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return [
        name
        for name in schema.get("required", ())
        if isinstance(item := properties.get(name), dict)
        and not item.keys() - {"title", "description"}
    ]
