"""Pickles a function and its arguments, for a worker without the notebook and this package.

Runs in the user's kernel, on the thread of the call. A function from a cell is pickled by value,
with the current values of the variables that it uses. Objects of this package are replaced by
references, for which `remote_run` substitutes its own: the marks of ``@mcp_tool``, whose options
may hold the executor itself, and the call's ``Context``. If a call is large, the notebook's
variables that make it so are named.
"""

import inspect
import io
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mcp_notebook.errors import ToolError
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.options import ToolOptions

_NOT_PICKLED = (
    "The function of {name!r} cannot be sent to its executor: {culprit} cannot be pickled "
    "({error}). Create what exists only in the notebook's process (a lock, an open file or "
    "connection, an executor) inside the function."
)
_NO_FILE = "<dynamic-code>"
"""In place of the name of a code's file, since cloudpickle 3.1.3."""


def pickle_call(
    name: str, function: Callable[..., Any], arguments: dict[str, Any], futures: list[Any]
) -> bytes:
    """Pickle a function with its arguments.

    Args:
        name: The tool's.
        function: The tool's.
        arguments: Of the function.
        futures: Receives the Dask futures that it uses; its worker needs their values.

    Raises:
        ToolError: Something cannot be pickled; the message names it.
    """
    try:
        return dump((function, arguments), futures)
    except Exception as error:
        culprit = _find_culprit(function, arguments)
        reason = describe_error(error).rstrip(".")
        raise ToolError(_NOT_PICKLED.format(name=name, culprit=culprit, error=reason)) from error


def dump(value: Any, futures: list[Any] | None = None) -> bytes:
    """Pickle the notebook's objects by value, and leave out those of this package.

    Args:
        value: Anything.
        futures: Receives the Dask futures in it; None: they are pickled as Dask does it.
    """
    from cloudpickle import CloudPickler  # noqa: PLC0415 - only executors need it

    class Pickler(CloudPickler):  # type: ignore[misc] # it has no types
        def persistent_id(self, obj: Any) -> Any:
            if type(obj) is ToolOptions:
                return ("mark",)
            if type(obj) is Context:
                return ("context", obj.tool, obj.wants_progress)
            if futures is not None and is_instance(obj, "distributed.client.Future"):
                futures.append(obj)
                return ("future", len(futures) - 1)
            return "Context" if obj is Context else None

        def reducer_override(self, obj: Any) -> Any:
            if type(obj) is CodeType:
                make, parts = self.dispatch_table[CodeType](obj)
                # The traceback on the worker names the cell: cloudpickle 3.1.3 leaves its name out.
                return make, tuple(obj.co_filename if x == _NO_FILE else x for x in parts)
            reduced = super().reducer_override(obj)
            if type(obj) is FunctionType and reduced is not NotImplemented:
                # No longer needed, and the worker may lack the classes in them.
                reduced[2][1]["__annotations__"] = {}
            return reduced

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    return buffer.getvalue()


def list_variables(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the notebook's variables that a function uses, and those of functions that it uses."""
    variables: dict[str, Any] = {}
    for name, value in _walk(function, set()):
        variables.setdefault(name, value)
    return variables


def _walk(function: Callable[..., Any], visited: set[int]) -> Iterator[tuple[str, Any]]:
    original = inspect.unwrap(function)
    if not isinstance(original, FunctionType) or id(original) in visited:
        return
    visited.add(id(original))
    if original.__module__ != "__main__":
        return  # it is pickled by name
    used = inspect.getclosurevars(original)
    for name, value in {**used.globals, **used.nonlocals}.items():
        if not isinstance(value, ModuleType):
            yield name, value
        if callable(value):
            yield from _walk(value, visited)


def _find_culprit(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return the name of what cannot be pickled, innermost variables first."""
    variables = [
        (f"the variable {name!r}", value) for name, value in list_variables(function).items()
    ]
    parameters = [(f"the argument {name!r}", value) for name, value in arguments.items()]
    for name, value in (*reversed(variables), *parameters):
        try:
            dump(value)
        except Exception:  # noqa: BLE001 - pickling runs the values' code
            return f"{name}, of type {type(value).__name__},"
    return "something that it uses"
