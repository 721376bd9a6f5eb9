"""What a model reads of a tool: too little, or a name that clients do not take.

Pure.
"""

from collections.abc import Iterator

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import CheckedTool, Subject
from mcp_notebook.kernel.tools.options import MAX_NAME, MAX_PREFIXED_NAME
from mcp_notebook.text.wording import count

_MAX_LISTED = 5


def judge_words(subject: Subject) -> Iterator[Finding]:
    """Yield what models are not told about the tools."""
    for tool in subject.list_tools():
        if len(tool.name) > MAX_PREFIXED_NAME:
            yield tool.make_finding(
                rule="long-name",
                severity="warning",
                reason=f"The name has {len(tool.name)} characters. With a prefix such as "
                f"`mcp__notebook__` it is longer than the {MAX_NAME} that models' APIs take, and "
                "clients cut it or leave the tool out.",
                advice=f"Use at most {MAX_PREFIXED_NAME} characters (`--name`).",
            )
        text = tool.info.description.partition("Examples of arguments:")[0].strip()
        if not text:
            yield tool.make_finding(
                rule="no-description",
                severity="error",
                reason="The tool has no description, so a model can only guess what it is for.",
                advice="Write a docstring: what it returns, of what, and in which unit.",
            )
        else:
            yield from _check_parameters(tool, text.lower())


def _check_parameters(tool: CheckedTool, text: str) -> Iterator[Finding]:
    names = [
        name
        for name, item in tool.properties.items()
        if not (isinstance(item, dict) and item.keys() & {"description", "$ref", "enum"})
        # "The days of a year" describes `year`.
        and not all(word in text for word in name.lower().split("_"))
    ]
    if not names:
        return
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_LISTED])
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    subject = "parameter has" if len(names) == 1 else "parameters have"
    yield tool.make_finding(
        rule="undescribed-parameter",
        severity="warning",
        reason=f"{count(len(names), subject, subject)} no description: {listed}{more}. A model "
        "guesses units, formats and allowed values.",
        advice=f'Add "Args:" with "{names[0]}: ..." to the docstring, or `Annotated[..., "..."]`.',
        parameter=names[0],
    )
