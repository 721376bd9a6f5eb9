"""A pytest plugin: each example of each tool of a notebook is a test.

Runs in the process of pytest. Nothing is collected without ``--mcp-notebook``, and until a notebook
is collected, nothing of mcp-notebook is imported. A notebook runs once, when it is collected.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mcp_notebook.check.findings import Finding
    from mcp_notebook.check.subject import Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that switches collection on."""
    parser.getgroup("mcp-notebook").addoption(
        "--mcp-notebook",
        action="store_true",
        help="Collect the tools of notebooks: each is called with its examples.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a notebook."""
    if file_path.suffix != ".ipynb" or not parent.config.getoption("--mcp-notebook"):
        return None
    collector: pytest.Collector = NotebookFile.from_parent(parent, path=file_path)
    return collector


class NotebookFile(pytest.File):
    """A notebook, whose tools and their examples are tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Run the notebook, and yield a test for itself, each tool and each of their examples."""
        import anyio  # noqa: PLC0415 - nothing of it costs other runs anything

        from mcp_notebook.check.examination import (  # noqa: PLC0415
            Examination,
            find_all,
            run_subject,
        )
        from mcp_notebook.errors import McpNotebookError  # noqa: PLC0415
        from mcp_notebook.settings.settings import Settings  # noqa: PLC0415

        try:
            subject: Subject = anyio.run(
                run_subject, Settings.from_environment(), Examination(notebook=self.path)
            )
        except McpNotebookError as error:
            raise self.CollectError(str(error)) from None
        findings = [each for each in find_all(subject) if each.severity != "note"]
        names = [tool.name for tool in subject.list_tools()]
        rest = [finding for finding in findings if finding.tool not in names]
        yield CheckItem.from_parent(self, name="notebook", findings=rest)
        for name in names:
            own = [finding for finding in findings if finding.tool == name]
            whole = [finding for finding in own if finding.example is None]
            yield CheckItem.from_parent(self, name=name, findings=whole)
            if not own and name in subject.skipped:
                reason = f"Not called: {subject.skipped[name]}."
                yield CheckItem.from_parent(self, name=f"{name}()", findings=[], reason=reason)
            for example, arguments in _list_examples(subject, name).items():
                about = [finding for finding in own if finding.example == example]
                title = f"{name}({arguments})"
                yield CheckItem.from_parent(self, name=title, findings=about)


def _list_examples(subject: "Subject", tool: str) -> dict[str, str]:
    """Return the examples with which a tool was called, as JSON, and each as in a call."""
    return {
        answer.example: ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in answer.arguments.items()
        )
        for answer in (*subject.trials, *subject.answers)
        if answer.tool == tool
    }


class CheckItem(pytest.Item):
    """An example, a tool or the notebook as a whole: it passes if nothing was found.

    Args:
        findings: What was found.
        reason: Why it was not called; None if it was.
        options: pytest's.
    """

    def __init__(
        self, *, findings: "list[Finding]", reason: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._findings = findings
        self._reason = reason

    def runtest(self) -> None:
        """Report what was found.

        Raises:
            FaultyTool: Something was.
        """
        if self._reason is not None:
            pytest.skip(self._reason)
        if self._findings:
            raise FaultyTool(self._findings)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the findings as the failure's text."""
        if not isinstance(excinfo.value, FaultyTool):
            return super().repr_failure(excinfo, style)
        return "\n".join(
            f"{finding.place or self.path.name}: {finding.reason} {finding.advice} [{finding.rule}]"
            for finding in excinfo.value.findings
        )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the notebook and the name of the tool or example."""
        return self.path, None, self.name


class FaultyTool(Exception):
    """Something is wrong with a tool.

    Args:
        findings: What is.
    """

    def __init__(self, findings: "list[Finding]") -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings
