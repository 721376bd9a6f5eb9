"""What a model reads of a tool: the rules of `kernel.tools.tool_words`, with places.

Pure.
"""

from collections.abc import Iterator

from msgspec import structs

from mcp_notebook.check.findings import Finding
from mcp_notebook.check.subject import Subject
from mcp_notebook.kernel.tools.tool_words import judge_tool_words


def judge_words(subject: Subject) -> Iterator[Finding]:
    """Yield what models are not told about the tools."""
    for tool in subject.list_tools():
        for problem in judge_tool_words(tool.name, tool.info.description, tool.properties):
            yield tool.make_finding(**structs.asdict(problem))
