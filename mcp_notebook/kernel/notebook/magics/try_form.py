"""The form of ``%mcp try TOOL``: a field for each parameter, a button, and the result below.

Runs on the kernel's main thread: in the cell that shows the form, and between cells when the button
is pressed. The form uses ipywidgets, which is imported with the first form. The tool's own schema
checks what was entered, before the call: a problem is shown below its field. The call itself is
that of ``%mcp call``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, tzinfo
from html import escape
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from IPython.core.error import UsageError
from msgspec import Struct

from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.schema_words import (
    PLAIN_WORDS,
    Schema,
    describe_schema,
    list_options,
    resolve,
)
from mcp_notebook.kernel.schemas.validation_messages import format_path
from mcp_notebook.kernel.tools.declared_tool import DeclaredTool
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.text.terminal import print_output
from mcp_notebook.text.typed_values import read_typed_value
from mcp_notebook.text.wording import make_printable

_LABELS = "10em"
"""Width of the labels."""
_OMITTED = object()
"""The value of a parameter that the call omits."""
_PICKERS = {"date": "DatePicker", "date-time": "NaiveDatetimePicker", "time": "TimePicker"}
"""The widget for each format; ipywidgets 7 has only the first."""
_READERS: Mapping[str, Callable[[str], Any]] = {
    "DatePicker": date.fromisoformat,
    "NaiveDatetimePicker": datetime.fromisoformat,
    "TimePicker": time.fromisoformat,
}
"""What reads a default for each of them."""
_ZONE = "UTC, +01:00 or Europe/Berlin"
"""Time zones that a person may write."""
_UNIONS = frozenset({"anyOf", "oneOf", "allOf"})


class _Field(Struct, frozen=True, kw_only=True):
    """The input of one parameter, or of one part of an object."""

    name: str
    """The name of the parameter or part."""
    place: str
    """Its place in the arguments, as messages about them have it."""
    box: Any
    """What the form shows: the input with a label, and the problem."""
    problem: Any
    """The line for what is wrong with it."""
    read: Callable[[], Any]
    """Returns the argument, or `_OMITTED`; raises `InvalidArguments` if it cannot be read."""
    forget: Callable[[], None] = lambda: None
    """Clears a secret."""
    parts: "Sequence[_Field]" = ()
    """The fields of an object."""


def build_form(
    tool: DeclaredTool,
    call: Callable[[dict[str, Any]], object],
    list_files: Callable[[], Sequence[str]] = tuple,
) -> Any:
    """Return a form that calls a tool, as a widget.

    Args:
        tool: The tool.
        call: Calls it with arguments, and prints and displays the result.
        list_files: Returns the files that a field for a `SharedPath` offers.

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
    fields = _FieldMaker(widgets, schema, list_files).make_fields(schema)
    button = widgets.Button(description=f"Call {tool.name}", button_style="primary")
    button.layout.width = "max-content"
    button.layout.margin = f".3em 0 .3em {_LABELS}"
    output = widgets.Output()

    def press(_button: object) -> None:
        output.clear_output()
        with output:
            try:
                arguments = _take_arguments(fields)
                tool.validate(arguments)
            except InvalidArguments as error:
                print_output(_show_problems(fields, str(error)))
            else:
                call(arguments)

    button.on_click(press)
    return widgets.VBox([*(field.box for field in fields), button, output])


def _take_arguments(fields: Sequence[_Field]) -> dict[str, Any]:
    """Return the arguments, and clear secrets and problems.

    Raises:
        InvalidArguments: A field cannot be read: its place, a colon, and what is wrong.
    """
    try:
        return _read_fields(fields)
    finally:
        for field in _list_all(fields):
            field.problem.value = ""
            field.forget()


def _read_fields(fields: Iterable[_Field]) -> dict[str, Any]:
    values = {field.name: field.read() for field in fields}
    return {name: value for name, value in values.items() if value is not _OMITTED}


def _list_all(fields: Iterable[_Field]) -> Iterator[_Field]:
    for field in fields:
        yield field
        yield from _list_all(field.parts)


# -- problems --------------------------------------------------------------------------------------


def _show_problems(fields: Sequence[_Field], problems: str) -> str:
    """Show each problem below its field, and return a message with those that belong to none.

    Args:
        fields: The fields of the form.
        problems: A line for each: its place, a colon, and what is wrong.
    """
    lines = ["The tool was not called."]
    for line in problems.splitlines():
        found = [field for field in _list_all(fields) if _is_about(line, field)]
        if not found:
            lines.append(line)
            continue
        field = max(found, key=lambda field: len(field.place))
        about = line.removeprefix(field.place).removeprefix(": ")
        # What is allowed is beside the field already, in words for people.
        text = _render_problem("missing" if about.startswith("missing; ") else about)
        field.problem.value = "<br>".join(filter(None, [field.problem.value, text]))
    return "\n".join(lines)


def _is_about(line: str, field: _Field) -> bool:
    return line.startswith(field.place) and line.removeprefix(field.place)[:1] in (".", "[", ":")


def _render_problem(text: str) -> str:
    style = f"margin-left:{_LABELS};color:var(--jp-error-color1,#b71c1c);line-height:1.4"
    return f"<div role='alert' style='{style}'>{escape(make_printable(text))}</div>"


# -- fields ----------------------------------------------------------------------------------------


class _FieldMaker:
    """Makes the fields for a tool's parameters.

    Args:
        widgets: The module ipywidgets.
        schema: The tool's input schema.
        list_files: As for `build_form`.
    """

    def __init__(
        self, widgets: Any, schema: Schema, list_files: Callable[[], Sequence[str]]
    ) -> None:
        self._widgets = widgets
        self._schema = schema
        self._list_files = list_files
        self._open: list[Schema] = []
        """The objects whose fields are being made."""

    def make_fields(
        self, item: Schema, path: tuple[str, ...] = (), defaults: Any = None
    ) -> list[_Field]:
        """Return a field for each property of an object.

        Args:
            item: The object's schema.
            path: The object's place in the arguments.
            defaults: The object's own default; None without one.
        """
        fields = []
        for name, part in item.get("properties", {}).items():
            default = part.get("default", _OMITTED) if isinstance(part, dict) else _OMITTED
            if isinstance(defaults, dict):
                default = defaults.get(name, default)
            is_required = name in item.get("required", ())
            fields.append(self._make_field((*path, name), part, default, is_required=is_required))
        return fields

    def _make_field(
        self, path: tuple[str, ...], item: Any, default: Any, *, is_required: bool
    ) -> _Field:
        target = _find_only_option(item, self._schema)
        # A type within itself would have no end: its text is JSON.
        is_recursive = any(target is each for each in self._open)
        if "object" in _list_types(target) and target.get("properties") and not is_recursive:
            return self._make_group(path, target, default, is_required=is_required)
        inputs, read = self._make_inputs(path, item, default, is_required=is_required)
        words = describe_schema(item, self._schema, PLAIN_WORDS)
        if type(inputs[0]).__name__ in _READERS:
            words, _, _ = words.partition(" as text")
        label = self._widgets.Label(words if is_required else f"{words}; optional")
        row = self._widgets.HBox([*inputs, label])
        row.layout.flex_flow = "row wrap"  # in a narrow output, the words are below the input
        problem = self._widgets.HTML()
        secrets = [each for each in inputs if isinstance(each, self._widgets.Password)]

        def forget() -> None:
            for each in secrets:
                each.value = ""

        return _Field(
            name=path[-1],
            place=format_path(path),
            box=self._widgets.VBox([row, problem]),
            problem=problem,
            read=read,
            forget=forget,
        )

    def _make_group(
        self, path: tuple[str, ...], item: Schema, default: Any, *, is_required: bool
    ) -> _Field:
        """Return the field of an object, with a field for each of its parts."""
        self._open.append(item)
        parts = self.make_fields(item, path, default)
        self._open.pop()
        untouched = _read_fields(parts)

        def read() -> Any:
            values = _read_fields(parts)
            return values if is_required or values != untouched else _OMITTED

        words = f"{item.get('title') or 'object'}{'' if is_required else '; optional'}"
        name, words = (escape(make_printable(text)) for text in (path[-1], words))
        heading = self._widgets.HTML(f"<b>{name}</b> {words}")
        inner = self._widgets.VBox([part.box for part in parts])
        inner.layout.margin = "0 0 .3em 1em"
        inner.layout.border_left = "2px solid var(--jp-border-color2, #ccc)"
        problem = self._widgets.HTML()
        return _Field(
            name=path[-1],
            place=format_path(path),
            box=self._widgets.VBox([heading, inner, problem]),
            problem=problem,
            read=read,
            parts=parts,
        )

    def _make_inputs(
        self, path: tuple[str, ...], item: Any, default: Any, *, is_required: bool
    ) -> tuple[Sequence[Any], Callable[[], Any]]:
        """Return the widgets for a value, and the function that reads the argument from them."""
        style = {"description": path[-1], "style": {"description_width": _LABELS}}
        if has_secrets(item, self._schema):
            secret = self._widgets.Password(**style)
            return [secret], lambda: secret.value or _OMITTED
        choices = _list_choices(resolve(item, self._schema))
        if choices is not None:
            if not is_required and default not in choices:
                choices = [_OMITTED, *choices]
            options = [("" if value is _OMITTED else repr(value), value) for value in choices]
            start = default if default in choices else choices[0]
            menu = self._widgets.Dropdown(options=options, value=start, **style)
            return [menu], lambda: menu.value
        if (pickers := self._make_pickers(path, item, default, style)) is not None:
            return pickers
        alternatives = list_options(item, self._schema)
        kinds = {kind for each in alternatives for kind in _list_types(each)}
        is_text = kinds - {"null"} == {"string"}
        if default is _OMITTED or default is None:
            start = ""
        else:
            start = default if is_text and isinstance(default, str) else json.dumps(default)
        if _find_only_option(item, self._schema).get("format") == "file-path":
            files = self._list_files()
            line = self._widgets.Combobox(value=start, options=files, **style)
        else:
            line = self._widgets.Text(value=start, continuous_update=False, **style)
        if is_text:
            return [line], lambda: line.value if line.value or is_required else _OMITTED
        return [line], lambda: _read_value(line.value, format_path(path))

    def _make_pickers(
        self, path: tuple[str, ...], item: Any, default: Any, style: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Callable[[], Any]] | None:
        """Return a picker for a date or time, and for both with an input of the time zone.

        Returns:
            As `_make_inputs`; None for other values, or if ipywidgets has no picker for it.
        """
        name = _PICKERS.get(_find_only_option(item, self._schema).get("format", ""))
        picker = getattr(self._widgets, name or "", None)
        if name is None or picker is None:
            return None
        start = None
        if isinstance(default, str):
            try:
                start = _READERS[name](default)
            except ValueError:
                return None
        if isinstance(start, time) and start.tzinfo is not None:
            return None  # the picker has no time zone
        if name == "NaiveDatetimePicker":
            return self._make_moment(path, start, style)
        chosen = picker(value=start, **style)
        return [chosen], lambda: _OMITTED if chosen.value is None else chosen.value.isoformat()

    def _make_moment(
        self, path: tuple[str, ...], start: datetime | None, style: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Callable[[], Any]]:
        """Return a picker for a date with its time, and an input of the time zone.

        The schemas of values with and without a time zone are the same.
        """
        local = start and start.replace(tzinfo=None)
        moment = self._widgets.NaiveDatetimePicker(value=local, **style)
        offset = start.isoformat().removeprefix(local.isoformat()) if start and local else ""
        zone = self._widgets.Text(
            value=offset, description="zone", placeholder="none", continuous_update=False
        )
        zone.style.description_width = "initial"
        zone.layout.width = "12em"

        def read() -> Any:
            if moment.value is None:
                return _OMITTED
            return moment.value.replace(tzinfo=_read_zone(zone.value, path)).isoformat()

        return [moment, zone], read


def _find_only_option(item: Any, root: Schema) -> Schema:
    """Return the schema that a value has unless it is null; {} if there are several."""
    options = [
        option
        for option in list_options(item, root)
        if option.get("type") != "null" and not _UNIONS & option.keys()
    ]
    return options[0] if len(options) == 1 else {}


def _list_types(schema: Schema) -> Sequence[str]:
    """Return the types that a schema names itself; one by hand may have a list of them."""
    kinds = schema.get("type", ())
    return [kinds] if isinstance(kinds, str) else kinds


def _list_choices(target: Schema) -> list[Any] | None:
    """Return the values that a parameter may have; None if they cannot be listed."""
    if target.get("type") == "boolean":
        return [False, True]
    values = target.get("enum")
    if not values or any(isinstance(value, list | dict) for value in values):
        return None
    return list(values)


def _read_value(text: str, place: str) -> Any:
    """Return the value of JSON, and any other text as it is, like ``%mcp call``.

    Raises:
        InvalidArguments: It is nested too deeply.
    """
    try:
        return read_typed_value(text) if text.strip() else _OMITTED
    except ValueError as error:
        raise InvalidArguments(f"{place}: {error}") from None


def _read_zone(text: str, path: tuple[str, ...]) -> tzinfo | None:
    """Return the time zone of its offset or name; None if there is none.

    Raises:
        InvalidArguments: There is no such time zone.
    """
    words = text.strip()
    if not words:
        return None
    try:
        if words[0] in "+-":
            return datetime.fromisoformat(f"2000-01-01T00:00:00{words}").tzinfo
        return ZoneInfo("UTC" if words in ("Z", "utc") else words)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        raise InvalidArguments(
            f"{format_path(path)}: {text!r} is not a time zone; write {_ZONE}, or nothing."
        ) from None
