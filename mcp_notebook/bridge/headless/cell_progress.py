"""The progress of a headless notebook's cells, as bars or lines on stderr.

Runs on the bridge's event loop. Nothing goes to stdout, which belongs to the protocol or to a
command's output.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp_notebook.text.terminal import print_note
from mcp_notebook.text.wording import count, make_printable


@dataclass(frozen=True, kw_only=True)
class CellProgress:
    """How far a notebook has run; reported before each cell and at the end."""

    notebook: Path
    done: int
    """Code cells that have run."""
    total: int
    """Code cells of the notebook."""
    source: str = ""
    """The source of the cell that starts now; empty at the end."""
    failure: str | None = None
    """A sentence about the last cell, if it failed and the run continues."""
    is_refusal: bool = False
    """Whether that is only about functions that cannot be tools."""


@contextmanager
def show_on_stderr() -> Iterator[Callable[[CellProgress], None]]:
    """Show the progress of notebooks during the block: bars on a terminal, otherwise lines.

    Yields:
        The function that takes the progress of any number of notebooks.
    """
    if not sys.stderr.isatty():
        yield _print_line
        return
    # A bridge that a client starts needs neither.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[notebook]}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {}

        def show(progress: CellProgress) -> None:
            if progress.notebook not in tasks:
                name = make_printable(progress.notebook.name)
                tasks[progress.notebook] = bars.add_task("", notebook=name)
            if progress.failure is not None:
                text = make_printable(progress.failure)
                console.print(text, style="yellow", markup=False, highlight=False)
            bars.update(
                tasks[progress.notebook],
                completed=progress.done,
                total=progress.total,
                description=make_printable(_shorten_source(progress.source)),
            )

        yield show


class SharedProgress:
    """The progress of notebooks that may start at any time; belongs to one event loop.

    A terminal can show one set of bars: the first notebook opens it, the last closes it.
    """

    def __init__(self) -> None:
        self._users = 0
        self._bars = ExitStack()
        self._report: Callable[[CellProgress], None] = _print_line

    @contextmanager
    def show(self) -> Iterator[Callable[[CellProgress], None]]:
        """Show progress during the block, as `show_on_stderr`."""
        if not self._users:
            self._report = self._bars.enter_context(show_on_stderr())
        self._users += 1
        try:
            yield self._report
        finally:
            self._users -= 1
            if not self._users:
                self._bars.close()


def _print_line(progress: CellProgress) -> None:
    name = progress.notebook.name
    if progress.failure is not None:
        print_note(progress.failure)
    if progress.source:
        source = _shorten_source(progress.source)
        line = f"{name}: cell {progress.done + 1} of {progress.total}: {source}"
    else:
        line = f"{name}: {count(progress.total, 'cell has', 'cells have')} run"
    print_note(line)


def _shorten_source(source: str) -> str:
    """Return the first line that is not empty or a cell magic, shortened."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    title = next((line for line in lines if not line.startswith("%%")), lines[0] if lines else "")
    return title if len(title) <= 60 else f"{title[:59]}…"  # noqa: PLR2004 - the rest of the line
