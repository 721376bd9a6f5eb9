"""The structured content of a result, and the checks of an author's `Result`.

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
    ResultTooLarge,
    check_size,
    convert_plain_data,
    shorten_data,
)
from mcp_notebook.kernel.schemas.output.output_schema import OutputSchema
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.meta_keys import SHORTENED, describe_key_problem


class Structured(Struct, frozen=True):
    """The structured content of a result."""

    data: Any
    """None: there is none, unless `is_bare`."""
    cuts: Sequence[Cut] = ()
    """The parts of it that were shortened."""
    is_bare: bool = False
    """See `Result.is_bare`."""

    @property
    def meta(self) -> dict[str, Any]:
        """The entry in the result's ``_meta`` about the cuts."""
        cuts = [{"path": list(cut.path), "kept": cut.kept, "total": cut.total} for cut in self.cuts]
        return {SHORTENED: cuts} if cuts else {}


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
    if not isinstance(value, Result):
        return Structured(None) if output is None else _convert(output, value, max_chars)
    _check_meta(value.meta)
    if output is None or value.is_error:
        return _convert_plain(value.structured, max_chars)
    if value.structured is None and not output.can_be_none:
        raise InvalidResult(
            "The tool has an output schema, but the `Result` that it returned has no "
            "`structured`: give it the data, or declare the tool with "
            "`output_schema=False` (`--no-output-schema`)."
        )
    return _convert(output, value.structured, max_chars)


def _convert(output: OutputSchema, value: Any, max_chars: int) -> Structured:
    try:
        return Structured(output.convert(value, max_chars), is_bare=not output.is_object)
    except ResultTooLarge as error:
        try:
            part, cuts = output.convert_part(value, max_chars)
            return Structured(part, cuts, is_bare=not output.is_object)
        except InvalidResult:
            raise error from None


def _convert_plain(value: Any, max_chars: int) -> Structured:
    try:
        data = convert_plain_data(value, max_chars)
        check_size(data, max_chars)
        return Structured(data)
    except ResultTooLarge as error:
        try:
            whole = convert_plain_data(value, max_chars * MAX_WHOLE)
            return Structured(*shorten_data(whole, max_chars))
        except InvalidResult:
            raise error from None


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
