"""A tool as its author declared it: its name with its parameters, as Python writes them.

Runs on any thread. Pure.
"""

import functools
import inspect
import re
from typing import Annotated, Any, get_args, get_origin

from mcp_notebook.kernel.schemas.parameters.input_schema import FunctionSchema
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.redaction import has_secrets

_ARRAY = re.compile(r"numpy\.ndarray\[[^()]*?, numpy\.dtype\[(?:numpy\.)?([\w~.]+)\]\]")


def format_signature(tool: DeclaredTool) -> str:
    """Return the tool's name with its parameters as its author wrote them."""
    if not isinstance(tool.schema, FunctionSchema) or tool.options.flatten:
        return _format_schema(tool)
    try:
        signature = inspect.signature(tool.function)
    except (TypeError, ValueError):
        return _format_schema(tool)
    bound = tool.function.keywords if isinstance(tool.function, functools.partial) else ()
    parameters = [
        parameter.replace(annotation=_strip_annotated(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name not in (*tool.schema.injected, *tool.schema.hidden, *bound)
    ]
    schema = tool.schema.input_schema
    # In the order of the signature; clients may know them by other names.
    for index, item in enumerate(schema["properties"].values()):
        is_there = index < len(parameters)  # a TypedDict's keys share one, `**kwargs`
        if is_there and has_secrets(item, schema) and not _lacks_default(parameters[index]):
            parameters[index] = parameters[index].replace(default=_Omitted())
    visible = signature.replace(parameters=parameters, return_annotation=signature.empty)
    # What numpy before 2.5 makes of `NDArray[np.float64]` is twice as long as the card is wide.
    text = _ARRAY.sub(r"NDArray[\1]", f"{tool.name}{visible}")
    return text.replace("NDArray[numpy.", "NDArray[").replace("pydantic.types.Secret", "Secret")


def _lacks_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty or parameter.default is None


class _Omitted:
    """Stands for a default that is a secret."""

    def __repr__(self) -> str:
        return "..."


def _format_schema(tool: DeclaredTool) -> str:
    """Return a signature with the parameters that the tool's input schema has."""
    schema = tool.schema.input_schema
    parameters = [
        name if name in schema.get("required", ()) else f"{name}={_format_default(item)}"
        for name, item in schema.get("properties", {}).items()
        if item is not False
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _format_default(schema: Any) -> str:
    has_default = isinstance(schema, dict) and "default" in schema
    is_visible = has_default and not has_secrets(schema, schema)
    return format_value(schema["default"]) if is_visible else "..."


def _strip_annotated(annotation: Any) -> Any:
    """Return a type hint without the constraints of `Annotated`, which are in another column."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
