"""The form of ``%mcp try TOOL``: a field for each parameter, a button, and the result below.

Runs on the kernel's main thread: in the cell that shows the form, and between cells when the button
is pressed. The form uses ipywidgets, which is imported with the first form. It calls the tool like
``%mcp call``, and leaves validation to the tool.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from mcp_notebook.kernel.schemas.schema_words import (
    PLAIN_WORDS,
    describe_schema,
    list_options,
    resolve,
)
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.redaction import has_secrets

_LABELS = "10em"
"""Width of the labels."""
_OMITTED = object()
"""The value of a parameter that the call omits."""


@dataclass(frozen=True)
class _Field:
    """The input field of one parameter."""

    widget: Any
    read: Callable[[Any], Any]
    """Converts the widget's value to the argument."""


def build_form(tool: DeclaredTool, call: Callable[[dict[str, Any]], None]) -> Any:
    """Return a form that calls a tool, as a widget.

    Args:
        tool: The tool.
        call: Calls it with arguments, and prints and displays the result.

    Raises:
        UsageError: ipywidgets is not installed.
    """
    try:
        import ipywidgets as widgets  # noqa: PLC0415 - only for those who ask for a form
    except ImportError:
        raise UsageError(
            f"The form of `%mcp try` needs ipywidgets: run `%pip install ipywidgets`, and reload "
            f"the page. Without it, `%mcp call {tool.name} name=value ...` calls the tool.",
        ) from None
    schema = tool.schema.input_schema
    fields = {
        name: _make_field(widgets, name, item, schema)
        for name, item in schema.get("properties", {}).items()
    }
    button = widgets.Button(description=f"Call {tool.name}", button_style="primary")
    button.layout.width = "max-content"
    button.layout.margin = f".3em 0 .3em {_LABELS}"
    output = widgets.Output()

    def press(_button: object) -> None:
        output.clear_output()
        values = {name: field.read(field.widget.value) for name, field in fields.items()}
        for field in fields.values():
            if isinstance(field.widget, widgets.Password):
                field.widget.value = ""  # a frontend may save the widget's state
        with output:
            call({name: value for name, value in values.items() if value is not _OMITTED})

    button.on_click(press)
    rows = [
        widgets.HBox([field.widget, widgets.Label(_explain(name, schema))])
        for name, field in fields.items()
    ]
    return widgets.VBox([*rows, button, output])


def _explain(name: str, schema: Mapping[str, Any]) -> str:
    words = describe_schema(schema["properties"][name], schema, PLAIN_WORDS)
    return words if name in schema.get("required", ()) else f"{words}; optional"


def _make_field(widgets: Any, name: str, item: Any, schema: Mapping[str, Any]) -> _Field:
    keywords = item if isinstance(item, dict) else {}
    is_required = name in schema.get("required", ())
    target = resolve(item, schema)
    style = {"description": name, "style": {"description_width": _LABELS}}
    default = keywords.get("default", _OMITTED)
    if has_secrets(keywords, schema):
        return _Field(widgets.Password(**style), lambda text: text or _OMITTED)
    choices = _list_choices(target)
    if choices is not None:
        if not is_required and default not in choices:
            choices = [_OMITTED, *choices]
        options = [("" if value is _OMITTED else repr(value), value) for value in choices]
        start = default if default in choices else choices[0]
        return _Field(widgets.Dropdown(options=options, value=start, **style), lambda value: value)
    kinds = {option.get("type") for option in list_options(item, schema)}
    is_text = kinds - {None, "null"} == {"string"}
    if default is _OMITTED or default is None:
        start = ""
    else:
        start = default if is_text and isinstance(default, str) else json.dumps(default)
    widget = widgets.Text(value=start, continuous_update=False, **style)
    if is_text:
        return _Field(widget, lambda text: text if text or is_required else _OMITTED)
    return _Field(widget, _read_value)


def _list_choices(target: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that a parameter may have; None if they cannot be listed."""
    if target.get("type") == "boolean":
        return [False, True]
    values = target.get("enum")
    if not values or any(isinstance(value, list | dict) for value in values):
        return None
    return list(values)


def _read_value(text: str) -> Any:
    """Return the value of JSON, and any other text as it is, like ``%mcp call``."""
    if not text.strip():
        return _OMITTED
    try:
        return json.loads(text)
    except ValueError:
        return text
