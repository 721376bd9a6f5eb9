"""A declared tool, prompt or resource: a function, its schemas, and the metadata that clients get.

Runs in the user's kernel, at definition, on the thread that declares the tool. `make_tool` builds a
tool from any callable. The mark of ``@mcp_tool`` on a function is read and written here.
"""

import inspect
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema, make_output_schema
from mcp_notebook.kernel.schemas.output.published_schema import publish_schema
from mcp_notebook.kernel.schemas.output.return_types import describes_view
from mcp_notebook.kernel.schemas.parameters.bound_objects import describe_way, find_objects
from mcp_notebook.kernel.schemas.parameters.callables import (
    NO_DEFAULT,
    find_variables,
    read_return_annotation,
    read_source,
)
from mcp_notebook.kernel.schemas.parameters.sent_arguments import split_texts
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import (
    FunctionSchema,
    check_parameter_names,
    read_function_schema,
)
from mcp_notebook.kernel.schemas.recursion import cut_cycles, has_other_references
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.schemas.schema_words import PLAIN_WORDS, describe_schema
from mcp_notebook.kernel.tools.completion import check_complete
from mcp_notebook.kernel.tools.context import Context
from mcp_notebook.kernel.tools.icons import restore_icon
from mcp_notebook.kernel.tools.metadata import make_metadata
from mcp_notebook.kernel.tools.options import (
    OPTION_TYPES,
    ResourceOptions,
    ToolOptions,
    check_name,
    check_options,
    note_long_name,
)
from mcp_notebook.kernel.tools.own_views import is_own
from mcp_notebook.kernel.tools.resource_templates import check_parameters
from mcp_notebook.text.redaction import has_secrets
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp_notebook.kernel.schemas.by_hand.author_schema import AuthorSchema


_F = TypeVar("_F", bound=Callable[..., Any])

RESULT_VIEW = "result"
"""The page that shows tables and plots; see `messages.ToolInfo.view`."""
OWN_VIEW = "own"
"""The tool's own page."""
MARK = "__mcp_tool__"
"""Attribute of a function that ``@mcp_tool``, say, marked: its `ToolOptions`."""
_OPTIONS = tuple(OPTION_TYPES.values())
SKILL = "__mcp_skill__"
"""Attribute of an object whose docstring is a skill: its `DeclaredTool`."""
CELL = "__mcp_cell__"
"""Attribute of a function or class decorated before the extension was loaded: its cell's id."""


class ToolOrigin(Protocol):
    """An object, or an attribute of one, that tools follow in place of a variable."""

    @property
    def word(self) -> str:
        """The word that the author wrote on the magic's line: ``counter``, ``model.predict``."""

    @property
    def value(self) -> Any:
        """The value of the word's variable when the tools were made."""

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether the notebook's variable still holds the value."""

    def with_options(self, options: ToolOptions) -> "ToolOrigin":
        """Return the same origin with other options for its tool."""

    def make_tools(self, namespace: Mapping[str, Any]) -> "Sequence[DeclaredTool]":
        """Make the tools again from the variable's present value; none if it was deleted.

        Raises:
            DefinitionError: The value cannot become tools.
        """


class DeclaredTool(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A function that clients can call: as a tool, to get a prompt, or to read a resource."""

    info: messages.ToolInfo
    """What clients get; its `name` identifies the tool in this kernel."""
    function: Callable[..., Any]
    """The function that a call runs."""
    schema: "FunctionSchema | AuthorSchema"
    """The schema of the arguments: from the signature, or written by the author."""
    options: ToolOptions
    """The options that the author set."""
    variable: str | None
    """The notebook's variable that the tool follows, if any."""
    origin: ToolOrigin | None = None
    """The object or attribute that the tool follows in place of a variable."""
    cell: str | None = None
    """The id of the cell that declared it, if the frontend sent one."""
    output: OutputSchema | None = None
    """The schema of structured results, if the tool has them."""
    notes: tuple[str, ...] = ()
    """Hints for the author, besides those of `schema`."""
    takes_secrets: bool = False
    """Whether some of its arguments are secrets."""
    declared_at: float = msgspec.field(default_factory=time.time)
    """When it was declared, in seconds since the epoch."""
    code: Any = None
    """The function's code at that time; ``%autoreload`` puts another one into the function."""

    @property
    def name(self) -> str:
        """The tool's name for clients."""
        return self.info.name

    @property
    def kind_word(self) -> Literal[messages.Kind, "skill"]:
        """What it is, for its author."""
        return self.info.kind if self.info.text is None else "skill"

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the function's arguments by name, defaults included.

        Args:
            arguments: As the client sent them; those of a prompt are texts.

        Raises:
            InvalidArguments: They do not fit.
        """
        if self.info.kind != "tool":
            arguments = split_texts(arguments, self.schema.input_schema)
        return self.schema.validate(arguments)

    def prepare(self) -> None:
        """Build the validators now: built in a fork of the kernel, they would be lost.

        Raises:
            DefinitionError: They cannot be built.
        """
        self.schema.prepare()
        if self.output is not None:
            self.output.prepare()

    def is_confirmed(self, revision: str | None) -> bool:
        """Return whether a call may run.

        Args:
            revision: The revision that a person has agreed to: see `Client.confirmed`.
        """
        return revision is None or self.info.revision in (None, revision)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All hints for the author, as the card shows them."""
        return (*self.schema.warnings, *self.notes)


def make_tool(
    function: Callable[..., Any],
    options: ToolOptions | None = None,
    *,
    variable: str | None = None,
    schemas: SchemaCache | None = None,
) -> DeclaredTool:
    """Build a tool from a function.

    Args:
        function: Any callable with a signature.
        options: The options that the author set; None: those that ``@mcp_tool`` left on it.
        variable: The notebook's variable that the tool follows and takes its name from.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: The name, an option or the signature cannot be offered to clients.
    """
    options = options or read_mark(function) or ToolOptions()
    if not callable(function):
        raise DefinitionError(
            f"{variable or function!r} is not a function, but of type {type(function).__name__}: "
            "only a callable can be a tool."
        )
    name = _choose_name(function, options, variable)
    check_name(name)
    schema = _read_schema(function, name, options, schemas)
    if options.kind == "tool":
        check_parameter_names(schema.input_schema, name)
    check_options(options, name)
    check_complete(options.completions, schema.input_schema.get("properties", {}), name)
    output = make_output_schema(
        function,
        name,
        schema=options.output_schema if options.kind == "tool" else False,
    )
    if isinstance(options, ResourceOptions):
        check_parameters(name, options.uri, schema.input_schema)
    info = _make_info(name, options, schema, output)
    info = structs.replace(info, view=_find_view(function, options))
    return DeclaredTool(
        info=info,
        function=function,
        schema=schema,
        options=_freeze_options(options, info, schema),
        variable=variable,
        output=output,
        notes=tuple(_list_notes(info, function, schema, variable or name)),
        takes_secrets=has_secrets(schema.input_schema, schema.input_schema),
        code=_find_code(function),
    )


def renew(tool: DeclaredTool, schemas: SchemaCache | None) -> DeclaredTool:
    """Return a tool as its function is now; the same tool unless that was changed in place.

    Args:
        tool: Any tool.
        schemas: Schemas of earlier starts.

    Raises:
        DefinitionError: Its function can no longer be a tool.
    """
    if tool.code is None or _find_code(tool.function) is tool.code:
        return tool
    options = replace(read_mark(tool.function) or tool.options, name=tool.name)
    new = make_tool(tool.function, options, variable=tool.variable, schemas=schemas)
    return structs.replace(new, origin=tool.origin, cell=tool.cell)


def _find_code(function: Callable[..., Any]) -> Any:
    try:
        return getattr(inspect.unwrap(function), "__code__", None)
    except Exception:  # noqa: BLE001 - a proxy may raise anything
        return None


def make_own_resource(function: Callable[..., Any], options: ResourceOptions) -> DeclaredTool:
    """Build a resource of this package, of which the name and the URI are not open to authors.

    Args:
        function: Returns the content.
        options: With a name and a URI.
    """
    name = options.name or ""
    schema = read_function_schema(function, name=name)
    info = _make_info(name, options, schema, None)
    return DeclaredTool(info=info, function=function, schema=schema, options=options, variable=None)


def _make_info(
    name: str,
    options: ToolOptions,
    schema: "FunctionSchema | AuthorSchema",
    output: OutputSchema | None,
) -> messages.ToolInfo:
    return structs.replace(
        make_metadata(options, name, schema),
        kind=options.kind,
        uri=options.uri if isinstance(options, ResourceOptions) else None,
        mime_type=options.mime_type if isinstance(options, ResourceOptions) else None,
        revision=secrets.token_hex(8) if options.confirm else None,
        task=("required" if options.task == "only" else "optional") if options.task else None,
        requires=list(dict.fromkeys(options.requires)),
        input_schema=_add_words(schema)
        if options.kind == "prompt"
        else cut_cycles(schema.input_schema),
        output_schema=None if output is None else publish_schema(output.schema),
    )


def _add_words(schema: "FunctionSchema | AuthorSchema") -> dict[str, Any]:
    """Return a prompt's schema with the allowed values in words: clients get nothing else of it."""
    whole = schema.input_schema
    properties = {}
    for name, item in whole["properties"].items():
        words = describe_schema(item, whole, PLAIN_WORDS)
        sections = (item.get("description"), None if words == "text" else f"({words})")
        properties[name] = {**item, "description": " ".join(filter(None, sections))}
    return {**whole, "properties": properties}


def _list_notes(
    info: messages.ToolInfo,
    function: Callable[..., Any],
    schema: "FunctionSchema | AuthorSchema",
    word: str,
) -> list[str]:
    """Return hints for the author about clients that have problems with a tool."""
    notes = [note for note in [note_long_name(info.name)] if note is not None]
    if schema.untyped:  # else its source need not be read
        required = [item.name for item in schema.parameters if item.default is NO_DEFAULT]
        names = set(required).intersection(schema.untyped)
        found = find_objects(read_source(function), names)
        notes += [
            f"{found[name]} {describe_way(word, schema.parameters, found)}"
            if name in found
            else f"`{name}` has no type hint: any value is accepted."
            for name in schema.untyped
        ]
    if schema.aliases:
        pairs = ", ".join(f"`{own}` is `{name}`" for own, name in schema.aliases.items())
        notes.append(f"For clients, {pairs}: models' APIs accept only ASCII names.")
    if has_other_references(info.input_schema):
        notes.append(
            "The schema has references besides `#/$defs/NAME`. If one of them leads back to "
            "itself, some clients (LlamaIndex, mcp-use) list no tools: move what it refers to into "
            "`$defs`."
        )
    return notes


def _find_view(function: Callable[..., Any], options: ToolOptions) -> str | None:
    """Return the kind of live view of a tool's results; see `messages.ToolInfo.view`."""
    if options.kind != "tool":
        return None
    if is_own(options.ui):
        return OWN_VIEW
    if options.ui is not None:
        return RESULT_VIEW if options.ui else None
    try:
        hint = read_return_annotation(function)
    except Exception:  # noqa: BLE001 - the author's expression; a card says so
        return None
    return RESULT_VIEW if describes_view(hint) else None


def _freeze_options(
    options: ToolOptions, info: messages.ToolInfo, schema: "FunctionSchema | AuthorSchema"
) -> ToolOptions:
    """Return a copy of the options that does not change with the author's files and dicts.

    A tool is made again from these options when its variable changes.
    """
    return replace(
        options,
        icons=tuple(map(restore_icon, info.icons or ())),
        input_schema=None if options.input_schema is None else deepcopy(schema.input_schema),
    )


def _choose_name(function: Callable[..., Any], options: ToolOptions, variable: str | None) -> str:
    if options.name is not None:
        return options.name
    python_name = getattr(function, "__name__", None)  # a proxy may return any type
    return variable or (python_name if isinstance(python_name, str) else None) or ""


def _read_schema(
    function: Callable[..., Any], name: str, options: ToolOptions, schemas: SchemaCache | None
) -> "FunctionSchema | AuthorSchema":
    if options.flatten and options.input_schema is not None:
        raise DefinitionError(
            f"`{name}`: `flatten` and `input_schema` both define the schema: remove one of them."
        )
    if options.input_schema is None:
        return read_function_schema(
            function,
            name=name,
            hidden_types=(Context,),
            variables=find_variables(function) if options.kind == "tool" else None,
            flatten=options.flatten,
            has_description=bool(options.description),
            is_tool=options.kind == "tool",
            cache=schemas,
        )
    # Late: it loads jsonschema, which most notebooks do not need.
    from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema  # noqa: PLC0415

    return read_author_schema(function, options.input_schema, name, hidden_types=(Context,))


# -- the mark of ``@mcp_tool`` ---------------------------------------------------------------------


def mark(function: _F, options: ToolOptions) -> _F:
    """Store the options on the function itself, so that it is a tool wherever it is loaded.

    Raises:
        DefinitionError: The object does not allow attributes (a builtin, say).
    """
    try:
        setattr(function, MARK, options)
    except (AttributeError, TypeError):
        raise DefinitionError(
            f"{function!r} does not allow attributes, so it cannot be decorated. "
            "Use `%mcp_tool` with its name instead."
        ) from None
    return function


def note_cell(value: Any, cell: str | None) -> None:
    """Store the cell in which a function or class was decorated, to declare it there later."""
    setattr(value, CELL, cell)


def read_cell(value: Any) -> str | None:
    """Return the cell's id that `note_cell` stored on this object itself, if any."""
    cell = vars(value).get(CELL)
    return cell if isinstance(cell, str) else None


def read_mark(function: Any) -> ToolOptions | None:
    """Return the options that ``@mcp_tool`` left, if any."""
    options = getattr(function, MARK, None)  # may have any type: a mock has every attribute
    return options if type(options) in _OPTIONS else None


def write_subject(tools: Sequence[DeclaredTool], names: Sequence[str]) -> str:
    """Return the subject of a sentence on declarations, with its verb: ``The prompt `x` is``."""
    kinds = {tool.kind_word for tool in tools}
    kind = f"{kinds.pop()}{'s' * (len(names) > 1)} " if len(kinds) == 1 else ""
    return f"{f'The {kind}' if kind else ''}{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def merge_mark(options: ToolOptions, function: Any) -> ToolOptions:
    """Return the options of a magic's line, completed by those of a decorator of the same kind."""
    mark, defaults = read_mark(function), type(options)()
    if mark is None or mark.kind != options.kind:
        return options
    values = {option.name: getattr(options, option.name) for option in fields(options)}
    changes = {name: value for name, value in values.items() if value != getattr(defaults, name)}
    return replace(mark, **changes)


def read_own_mark(value: Any) -> ToolOptions | None:
    """Return the options that ``@mcp_tool`` left on this object itself, without loading a proxy."""
    options = _read_own(value, MARK)
    return options if type(options) in _OPTIONS else None


def _read_own(value: Any, name: str) -> Any:
    try:
        return vars(value).get(name)
    except Exception:  # noqa: BLE001 - a proxy that is not bound may raise anything
        return None


def mark_skill(value: Any, skill: DeclaredTool) -> None:
    """Store the skill that a docstring is on its object, to declare it when that is loaded."""
    with suppress(AttributeError, TypeError):  # a builtin
        setattr(value, SKILL, skill)


def read_skill_mark(value: Any) -> DeclaredTool | None:
    """Return the skill that ``@mcp_skill`` stored on this object itself, if any."""
    skill = _read_own(value, SKILL)
    return skill if isinstance(skill, DeclaredTool) else None


def find_marked(
    variables: Iterable[tuple[str, Any]],
) -> Iterable[tuple[str, Callable[..., Any]]]:
    """Yield the variables that hold a function with the mark of ``@mcp_tool``."""
    for name, value in variables:
        # Not `read_mark`: a lazy proxy would load.
        if read_own_mark(value) is not None:
            yield name, value
