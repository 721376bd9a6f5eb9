"""How far a headless notebook's cells are: what is told, and its bars or lines on stderr.

Runs in the bridge. `bridge.headless.notebook` tells it, who starts a notebook shows it. Never
writes to stdout, which is the protocol's or a command's own.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class CellProgress:
    """Where a notebook's run stands; told before each cell and at the end."""

    notebook: Path
    done: int
    """Code cells that have run."""
    total: int
    """Code cells of the notebook."""
    source: str = ""
    """Of the cell that begins to run; empty at the end."""
    failed: str | None = None
    """A sentence, when the last cell failed and the run goes on (``allow_errors``)."""


@contextmanager
def shown_on_stderr() -> Iterator[Callable[[CellProgress], None]]:
    """Show the progress of notebooks within the block: bars on a terminal, plain lines elsewhere.

    Yields:
        The function to tell progress to; for any number of notebooks at once.
    """
    from rich.console import Console  # noqa: PLC0415 - a live bridge shows none

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _print_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

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
                tasks[progress.notebook] = bars.add_task("", notebook=progress.notebook.name)
            if progress.failed is not None:
                console.print(progress.failed, style="yellow", markup=False, highlight=False)
            bars.update(
                tasks[progress.notebook],
                completed=progress.done,
                total=progress.total,
                description=_title(progress.source),
            )

        yield show


class SharedProgress:
    """The progress of notebooks that start and end to run at any time; belongs to one event loop.

    A terminal has room for one set of bars: the first that shows something puts them up, the last
    takes them away.
    """

    def __init__(self) -> None:
        self._users = 0
        self._bars = ExitStack()
        self._show: Callable[[CellProgress], None] = _print_line

    @contextmanager
    def shown(self) -> Iterator[Callable[[CellProgress], None]]:
        """Show progress within the block, as `shown_on_stderr`."""
        if not self._users:
            self._show = self._bars.enter_context(shown_on_stderr())
        self._users += 1
        try:
            yield self._show
        finally:
            self._users -= 1
            if not self._users:
                self._bars.close()


def _print_line(progress: CellProgress) -> None:
    name = progress.notebook.name
    if progress.failed is not None:
        print(progress.failed, file=sys.stderr)  # noqa: T201 - as below
    if progress.source:
        line = f"{name}: cell {progress.done + 1} of {progress.total}: {_title(progress.source)}"
    else:
        line = f"{name}: all {progress.total} cells have run"
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - the command's own output


def _title(source: str) -> str:
    """Return the first line that says something, shortened."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    title = next((line for line in lines if not line.startswith("%%")), lines[0] if lines else "")
    return title if len(title) <= 60 else f"{title[:59]}…"  # noqa: PLR2004 - the rest of the line
