"""Prints text for people: from commands, in the user's cells, and in the log.

Runs in every process. Much of the text is foreign (a tool's result, a file name, an error message)
and may reach a terminal, at once or when the log is read. Escape codes and other control
characters are removed, so that it cannot move the cursor, set the clipboard or look like other
text. Results for clients over MCP are not changed.
"""

import logging
import sys
from collections.abc import Iterable, Sequence

from mcp_notebook.text.wording import make_printable


def print_output(text: str) -> None:
    """Print the output of a command or a magic on stdout."""
    print(make_printable(text), flush=True)  # noqa: T201 - what this module is for, as below


def print_data(text: str) -> None:
    """Print data on stdout: unchanged for a file or another program."""
    print(make_printable(text) if sys.stdout.isatty() else text, flush=True)  # noqa: T201


def print_note(text: str, *, end: str = "\n") -> None:
    """Print a message for the user on stderr.

    Args:
        text: Any text.
        end: The end of the line.
    """
    print(make_printable(text), end=end, file=sys.stderr, flush=True)  # noqa: T201


def print_check(mark: str, text: str, *, is_wrong: bool) -> None:
    """Print the result of a check on stdout, after a mark; in color on a terminal.

    Args:
        mark: One character; replaced by an ASCII character if stdout cannot encode it.
        text: The result, on one line or several.
        is_wrong: Whether the check failed.
    """
    try:
        mark.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        mark = "x" if is_wrong else "+"
    if sys.stdout.isatty():
        mark = f"\x1b[{31 if is_wrong else 32}m{mark}\x1b[0m"
    lines = make_printable(text).replace("\n", "\n    ")
    print(f"  {mark} {lines}", flush=True)  # noqa: T201


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout: as wide as the terminal, or as tab-separated lines for a program.

    Args:
        titles: Column titles, which a program does not get.
        rows: The texts of each row.
    """
    if not sys.stdout.isatty():
        for row in rows:
            print_output("\t".join(row))
        return
    from rich.console import Console  # noqa: PLC0415 - not needed in kernels, or when piped
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - the texts are not markup

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_printable(text)) for text in row))
    Console().print(table)


class LogFormatter(logging.Formatter):
    """Formats log records so that no text in one looks like another record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record with its traceback, and all lines but the first indented."""
        return make_printable(super().format(record)).replace("\n", "\n    ")


def format_logs() -> None:
    """Use `LogFormatter` if logging is not configured, as in the processes of commands."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LogFormatter())
