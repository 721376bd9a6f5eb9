"""The structured content of a result, the data for a page, and the checks of an author's `Result`.

Runs in the user's kernel, on the thread of the call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mcp_notebook.content import Result
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.schemas.output.data_limit import (
    MAX_WHOLE,
    Cut,
    convert_plain_data,
    has_at_most,
    shorten_data,
    take_first,
)
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema
from mcp_notebook.kernel.schemas.output.published_schema import RESULT
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.meta_keys import DATA, SHORTENED, describe_key_problem


class Structured(Struct, frozen=True):
    """The structured content of a result."""

    data: dict[str, Any] | None
    """None: there is none."""
    cuts: Sequence[Cut] = ()
    """The parts of it that were shortened."""


NO_DATA = Structured(None)


def make_structured(value: Any, output: OutputSchema | None, max_chars: int) -> Structured:
    """Return the structured content of a result, shortened if it is too large.

    Args:
        value: What the tool returned.
        output: The tool's output schema, if it has one.
        max_chars: Maximum characters of the structured content as JSON.

    Raises:
        InvalidResult: The data, or the first part of too much data, does not match the schema; or
            the author's `Result` has an invalid `meta`.
    """
    if not issubclass(type(value), Result):  # the value's `__class__` may be anybody's code
        return NO_DATA if output is None else _convert(output, value, max_chars)
    _check_meta(value.meta)
    if output is None or value.is_error:
        data, cuts = _convert_plain(value.structured, max_chars)
        return Structured(data if data is None or type(data) is dict else {RESULT: data}, cuts)
    if value.structured is None and not output.can_be_none:
        raise InvalidResult(
            "The tool has an output schema, but the `Result` that it returned has no "
            "`structured`: give it the data, or remove the tool's `output_schema`."
        )
    return _convert(output, value.structured, max_chars)


def _convert(output: OutputSchema, value: Any, max_chars: int) -> Structured:
    data, cuts = output.convert(value, max_chars)
    return Structured(data if output.is_at_root else {RESULT: data}, cuts)


def make_page_data(value: Any, max_chars: int) -> dict[str, Any]:
    """Return the entries of ``_meta`` with the data that an author's page gets.

    Args:
        value: What the tool returned.
        max_chars: Maximum characters of the data as JSON.
    """
    value = value.structured if isinstance(value, Result) else value
    part = take_first(value, max_chars)
    if not has_at_most(part, max_chars * MAX_WHOLE):
        return {}  # the page has the text
    try:
        data, cuts = _convert_plain(part, max_chars)
    except InvalidResult:
        return {}
    said = [{"path": list(cut.path), "kept": cut.kept, "total": cut.total} for cut in cuts]
    return {DATA: data} | ({SHORTENED: said} if said else {})


def _convert_plain(value: Any, max_chars: int) -> tuple[Any, Sequence[Cut]]:
    return shorten_data(convert_plain_data(value, max_chars * MAX_WHOLE), max_chars)


def _check_meta(meta: Any) -> None:
    if meta is not None and not isinstance(meta, Mapping):
        raise InvalidResult(
            "The `meta` of the `Result` that the tool returned is a dict, like "
            f"{{'com.example/source': 'sales'}}, not {format_value(meta)}."
        )
    for key in meta or ():
        if problem := describe_key_problem(key):
            raise InvalidResult(
                "The `meta` of the `Result` that the tool returned has the key "
                f"{format_value(key)}, {problem}."
            )
