"""What a model reads of a tool: too little, or a name that clients do not take.

Pure; `check` judges declared tools by it, and `notebook.proposed_tools` those that clients propose.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from mcp_notebook.kernel.tools.options import MAX_NAME, MAX_PREFIXED_NAME
from mcp_notebook.text.wording import count

_MAX_LISTED = 5


class WordsProblem(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with what a model reads."""

    rule: str
    severity: Literal["error", "warning"]
    reason: str
    advice: str
    parameter: str | None = None


def judge_tool_words(
    name: str, description: str, properties: Mapping[str, Any]
) -> Iterator[WordsProblem]:
    """Yield what models are not told about a tool.

    Args:
        name: Its name.
        description: Its description; examples of arguments at the end do not count.
        properties: The schemas of its parameters.
    """
    if len(name) > MAX_PREFIXED_NAME:
        yield WordsProblem(
            rule="long-name",
            severity="warning",
            reason=f"The name has {len(name)} characters. With a prefix such as "
            f"`mcp__notebook__` it is longer than the {MAX_NAME} that models' APIs take, and "
            "clients cut it or leave the tool out.",
            advice=f"Use at most {MAX_PREFIXED_NAME} characters (`--name`).",
        )
    text = description.partition("Examples of arguments:")[0].strip()
    if not text:
        yield WordsProblem(
            rule="no-description",
            severity="error",
            reason="The tool has no description, so a model can only guess what it is for.",
            advice="Write a docstring: what it returns, of what, and in which unit.",
        )
    else:
        yield from _judge_parameters(text.lower(), properties)


def _judge_parameters(text: str, properties: Mapping[str, Any]) -> Iterator[WordsProblem]:
    names = [
        name
        for name, item in properties.items()
        if not (isinstance(item, dict) and item.keys() & {"description", "$ref", "enum"})
        # "The days of a year" describes `year`.
        and not all(word in text for word in name.lower().split("_"))
    ]
    if not names:
        return
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_LISTED])
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    subject = "parameter has" if len(names) == 1 else "parameters have"
    yield WordsProblem(
        rule="undescribed-parameter",
        severity="warning",
        reason=f"{count(len(names), subject, subject)} no description: {listed}{more}. A model "
        "guesses units, formats and allowed values.",
        advice=f'Add "Args:" with "{names[0]}: ..." to the docstring, or `Annotated[..., "..."]`.',
        parameter=names[0],
    )
