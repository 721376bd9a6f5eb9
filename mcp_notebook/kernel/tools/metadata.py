"""The metadata of a tool, besides its schemas: checked, and in the form that clients get.

Runs in the user's kernel, at definition, on the thread that declares the tool. Pure, except that
the files of icons are read.
"""

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import structs
from pydantic_core import from_json, to_jsonable_python

from mcp_notebook import meta_keys
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.safe.text import clean_text, describe_error
from mcp_notebook.kernel.schemas.docstrings import MAX_DESCRIPTION
from mcp_notebook.kernel.schemas.validation_messages import format_value, shorten_message
from mcp_notebook.kernel.tools.icons import read_icons
from mcp_notebook.kernel.tools.options import ToolOptions
from mcp_notebook.wire import messages

if TYPE_CHECKING:
    from mcp_notebook.kernel.schemas.by_hand.author_schema import AuthorSchema
    from mcp_notebook.kernel.schemas.parameters.signature_to_schema import FunctionSchema

    ArgumentSchema: TypeAlias = FunctionSchema | AuthorSchema

MAX_EXAMPLES = 4_000
"""Maximum characters of a tool's examples as JSON: each client reads them in each list of tools."""
_MAX_TEXTS = {"description": MAX_DESCRIPTION, "title": 200}
"""Maximum length of options that are text."""
MAX_META = 64 * 2**10
"""Maximum characters of the author's own ``_meta`` as JSON."""
DEFAULT_RESULT_CHARS = 50_000
"""Characters of a result that Claude Code shows by default: 25,000 tokens, two characters each in
numbers."""
MAX_RESULT_CHARS = 500_000
"""Maximum characters that it shows if the tool's metadata asks for more."""
_DEPTH_OF_META = 20
"""Levels of lists and dicts around ``_meta`` in a message to a client, with some to spare: parsers
accept about 200 levels."""


def make_metadata(options: ToolOptions, name: str, schema: "ArgumentSchema") -> messages.ToolInfo:
    """Return what clients get of a tool: its metadata, with the schema as it is.

    Args:
        options: The options that its author set.
        name: The tool's name.
        schema: The schema of its arguments, with the docstring's text; it checks the examples.

    Raises:
        DefinitionError: An option is invalid.
    """
    related = tuple(
        other for other in _check_words(options.related, "related", name) if other != name
    )
    description = schema.description if options.description is None else options.description
    examples = _check_examples(options.examples, schema, name)
    sections = [
        _check_length(_check_text(description, "description", name), "description", name),
        "\n".join(["Examples of arguments:", *(f"- {text}" for text in examples)])
        if examples
        else "",
    ]
    meta = {
        **_check_meta({} if options.meta is None else options.meta, name),
        meta_keys.TAGS: list(_check_words(options.tags, "tags", name)),
        meta_keys.PRIORITY: _check_priority(options.priority, name),
        meta_keys.RELATED: list(related),
        meta_keys.CACHE: options.cache_time or options.cache,
        meta_keys.CONFIRM: options.confirm,
    }
    meta = {key: value for key, value in meta.items() if value or not _is_ours(key)}
    return messages.ToolInfo(
        name=name,
        input_schema=schema.input_schema,
        title=None
        if options.title is None
        else _check_length(_check_text(options.title, "title", name), "title", name),
        description="\n\n".join(section for section in sections if section),
        annotations=_read_hints(options, name) or None,
        icons=read_icons(options.icons, name) or None,
        meta=meta or None,
        examples=[json.loads(text) for text in examples],
    )


def add_result_size(info: messages.ToolInfo, chars: int) -> messages.ToolInfo:
    """Add the size of results to a tool's metadata if it is above the default of clients.

    Args:
        info: What clients get; a size that its author set stays.
        chars: Characters of text in its results.
    """
    if chars <= DEFAULT_RESULT_CHARS or meta_keys.MAX_RESULT_SIZE in (info.meta or {}):
        return info
    size = min(chars, MAX_RESULT_CHARS)
    meta = {**(info.meta or {}), meta_keys.MAX_RESULT_SIZE: size}
    return structs.replace(info, meta=meta)


def _check_text(text: Any, option: str, name: str) -> str:
    if not isinstance(text, str):
        raise DefinitionError(
            f"`{name}`: `{option}` must be a string, not of type {type(text).__name__}: put quotes "
            "around it."
        )
    return clean_text(text)


def _check_length(text: str, option: str, name: str) -> str:
    limit = _MAX_TEXTS[option]
    if len(text) > limit:
        raise DefinitionError(
            f"`{name}`: `{option}` has {len(text):,} characters, and clients read it in every list "
            f"of tools: shorten it to {limit:,}."
        )
    return text


def _check_words(words: Any, option: str, name: str) -> tuple[str, ...]:
    """Return the words without repetition."""
    listed = not isinstance(words, str) and isinstance(words, (Sequence, set, frozenset))
    if not listed or not all(isinstance(word, str) and word.strip() for word in words):
        raise DefinitionError(
            f"`{name}`: `{option}` must be a list of strings, like `{option}=['sales']`, not "
            f"{format_value(words)}."
        )
    ordered = sorted(words) if isinstance(words, (set, frozenset)) else words
    return tuple(dict.fromkeys(" ".join(clean_text(word).split()) for word in ordered))


# -- hints -----------------------------------------------------------------------------------------

_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


def _read_hints(options: ToolOptions, name: str) -> dict[str, bool]:
    """Return the hints that are set, under MCP's names; clients assume the worst of the rest."""
    values = {hint: getattr(options, option) for option, hint in _HINTS.items()}
    hints = {hint: value for hint, value in values.items() if value is not None}
    if options.read_only and options.destructive:
        raise DefinitionError(
            f"`{name}` cannot be both `read_only` and `destructive`: a tool that "
            "only reads cannot destroy anything. Remove one of them."
        )
    return hints


# -- examples --------------------------------------------------------------------------------------


def _check_examples(examples: Any, schema: "ArgumentSchema", name: str) -> list[str]:
    """Return the examples as JSON: calls that the tool's own validator accepts."""
    calls = [examples] if isinstance(examples, Mapping) else examples
    if isinstance(calls, str) or not isinstance(calls, Sequence):
        raise DefinitionError(
            f"`{name}`: `examples` must be a list of dicts of arguments, like "
            f"`examples=[{{'year': 2012}}]`, not {format_value(examples)}."
        )
    texts = [
        _check_example(example, number, schema, name)
        for number, example in enumerate(calls, start=1)
    ]
    if sum(map(len, texts)) > MAX_EXAMPLES:
        raise DefinitionError(
            f"`{name}`: its examples have {sum(map(len, texts)):,} characters of JSON, and clients "
            f"read them in every list of tools: shorten them to {MAX_EXAMPLES:,}."
        )
    return texts


def _check_example(example: Any, number: int, schema: "ArgumentSchema", name: str) -> str:
    what = f"`{name}`: its example {number}"
    if not isinstance(example, Mapping) or not all(isinstance(key, str) for key in example):
        raise DefinitionError(
            f"{what}, {format_value(example)}, is not a dict of arguments: write it as "
            "`{'year': 2012}`."
        )
    text = _dump_json(dict(example), what)
    try:
        # A copy, as a client would send it: the author's validators may change their input.
        schema.validate(json.loads(text))
    except InvalidArguments as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DefinitionError(
            f"{what}, {_shorten(text)}, does not match the tool's own parameters "
            f"({reason}): correct it."
        ) from None
    return text


def _dump_json(value: Any, what: str) -> str:
    """Return a value as JSON, as a client would write it.

    Raises:
        DefinitionError: It cannot be written as JSON.
    """
    try:
        plain = to_jsonable_python(value, inf_nan_mode="constants")
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False)
        text.encode()
    except Exception as error:  # an object of the author's may raise anything
        raise DefinitionError(
            f"{what} cannot be written as JSON ({shorten_message(describe_error(error))}): use "
            "only strings, numbers, lists and dicts."
        ) from error
    return text


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."  # noqa: PLR2004 - for one sentence


# -- _meta -----------------------------------------------------------------------------------------


def _check_meta(meta: Any, name: str) -> dict[str, Any]:
    """Return the author's ``_meta`` as plain JSON, its keys checked by MCP's rules."""
    if not isinstance(meta, Mapping):
        raise DefinitionError(
            f"`{name}`: `meta` must be a dict, like `meta={{'com.example/team': 'sales'}}`, not "
            f"{format_value(meta)}."
        )
    for key in meta:
        if problem := meta_keys.describe_key_problem(key):
            raise DefinitionError(f"`{name}`: `meta` has the key {format_value(key)}, {problem}.")
    text = _dump_json(dict(meta), f"`{name}`: its `meta`")
    if len(text) > MAX_META:
        raise DefinitionError(
            f"`{name}`: its `meta` has {len(text):,} characters of JSON, and clients read it in "
            f"every list of tools: shorten it to {MAX_META:,}."
        )
    try:
        # As deeply nested as it will be in the list of tools.
        from_json("[" * _DEPTH_OF_META + text + "]" * _DEPTH_OF_META)
    except ValueError:
        raise DefinitionError(
            f"`{name}`: its `meta` is nested more deeply than clients can read: flatten it."
        ) from None
    plain: dict[str, Any] = json.loads(text)
    return plain


def _is_ours(key: str) -> bool:
    return key.startswith(meta_keys.PREFIX)


def _check_priority(priority: Any, name: str) -> float:
    usable = isinstance(priority, numbers.Real) and not isinstance(priority, bool)
    try:
        number = float(priority) if usable else math.nan
    except (OverflowError, ValueError):
        number = math.inf
    if not math.isfinite(number):
        raise DefinitionError(
            f"`{name}`: `priority` must be a number (0 by default; higher ones are listed first), "
            f"not {format_value(priority)}."
        )
    return number
