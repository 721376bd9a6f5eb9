"""The structured content of a result, and the `_meta` of one that the author made.

Runs in the user's kernel, on the thread of the call.
"""

from collections.abc import Mapping
from typing import Any

from mcp_notebook.content import Result
from mcp_notebook.errors import InvalidResult
from mcp_notebook.kernel.schemas.output_schema import OutputSchema
from mcp_notebook.kernel.schemas.structured_data import check_size, convert_plain_data
from mcp_notebook.kernel.schemas.validation_messages import format_value
from mcp_notebook.meta_keys import describe_key_problem


def make_structured(value: Any, output: OutputSchema | None, max_chars: int) -> Any:
    """Return the structured content of a result, None for none.

    Args:
        value: What the tool returned.
        output: The tool's output schema, if it has one.
        max_chars: Characters of the structured content as JSON.

    Raises:
        InvalidResult: The data does not match the schema, or is too large; or the author's `Result`
            has a `meta` that cannot be sent.
    """
    if not isinstance(value, Result):
        return None if output is None else output.convert(value, max_chars)
    _check_meta(value.meta)
    if output is None or value.is_error:
        structured = convert_plain_data(value.structured, max_chars)
        check_size(structured, max_chars)
        return structured
    if value.structured is None and not output.can_be_none:
        raise InvalidResult(
            "The tool has an output schema, but the `Result` that it returned has no "
            "`structured`: give it the data, or declare the tool with "
            "`output_schema=False` (`--no-output-schema`)."
        )
    return output.convert(value.structured, max_chars)


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
