"""Files that tools return as paths: which of them are opened.

Runs in the user's kernel, on the thread of the call; a file that a result only links to is read on
the thread of who reads it. Only regular files within the notebook's folder and the allowed roots
are opened, whatever path leads to them, each once; nothing here waits for a file that has nothing
to read (a pipe, a device). What is in a file is `kernel.results.file_contents`' business, what a
path within data is, its text, `kernel.safe.to_json`'s.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Self

from mcp_notebook.content import Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import BINARY, format_size
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.file_contents import File, render_file
from mcp_notebook.kernel.safe.text import clean_text, describe_error
from mcp_notebook.settings import Settings

MAX_FILES = 8
"""Paths of one list or dict whose files are shown; of more, all are shown as text."""
MAX_ENTRIES = 10_000
"""Entries of a folder that are counted."""

_NO_FILES = tuple(Path(path) for path in ("/proc", "/sys"))
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # what is put in a file's place meanwhile may be a pipe
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link to itself"),
)


class Unreadable(CallError):
    """A file cannot be shown; says which and why."""


def is_path(value: Any) -> bool:
    """Tell whether a value is the path of a file: no text, and no path of another system."""
    if isinstance(value, PurePath):
        return isinstance(value, Path)
    return isinstance(value, os.PathLike)


class Files:
    """What of the file system results may show; never changed.

    Args:
        folder: The notebook's, if it has one.
        roots: What else its author allows.
    """

    def __init__(self, folder: Path | None, roots: Sequence[Path] = ()) -> None:
        own = None if folder is None else _real(folder)
        # A kernel without a folder of its own is started in "/": that allows nothing.
        self._folder = None if own is None or own == Path(own.anchor) else own
        self._allowed = tuple(map(_real, roots))
        self._roots = (*((self._folder,) if self._folder else ()), *self._allowed)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the settings allow, and the folder in which the kernel is now."""
        try:
            folder = Path.cwd()
        except OSError:  # it was removed
            folder = None
        return cls(folder, settings.allowed_roots)

    def render(self, path: Any, budget: Budget) -> list[Piece]:
        """Make blocks of a file's content, or a sentence.

        Args:
            path: Anything that `is_path`.
            budget: What the result may take.
        """
        try:
            said, real = self._located(path)
            with _explained(said):
                if real.is_dir():
                    return [Piece(Text(_folder_text(said, real)))]
                with self._opened(said, real) as (file, found):
                    return render_file(file, found, budget, partial(self._original, found))
        except Unreadable as error:
            return [Piece(Text(f"[{error}]"))]

    def _located(self, path: Any) -> tuple[str, Path]:
        """Return a path as it was written, and where it leads to.

        Raises:
            Unreadable: It leads nowhere, or to where results show nothing from.
        """
        try:
            given = os.fsdecode(os.fspath(path))
            real = Path(os.path.realpath(given))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a path's own code, or a path with a NUL
            name = type(path).__name__
            raise Unreadable(f"A {name} is no path: {describe_error(error)}.") from None
        said = clean_text(given)
        if not any(real.is_relative_to(root) for root in self._roots):
            raise Unreadable(self._outside(said, clean_text(os.path.abspath(given)), real))  # noqa: PTH100 - pathlib's keeps ".."
        if os.name == "posix" and any(real.is_relative_to(place) for place in _NO_FILES):
            raise Unreadable(f"The file {said} is not shown: it is a view of the system's.")
        return said, real

    def _outside(self, said: str, absolute: str, real: Path) -> str:
        target = clean_text(str(real))
        leads = "" if absolute == target else f" leads to {target}, which"
        own = "the notebook's folder" + (
            f" ({clean_text(str(self._folder))})" if self._folder else ""
        )
        roots = os.pathsep.join(clean_text(str(root)) for root in (*self._allowed, real.parent))
        return (
            f"The file {said} is not shown: it{leads} is outside of {own} and the allowed roots. "
            f"To allow it, run `%env MCP_NOTEBOOK_ALLOWED_ROOTS={roots}`, `%reload_ext "
            "mcp_notebook` and the tools' cells again in the notebook, or set that variable before "
            "Jupyter starts."
        )

    @contextmanager
    def _opened(self, said: str, real: Path) -> Iterator[tuple[BinaryIO, File]]:
        """Open a file, once, and tell what it is.

        Raises:
            Unreadable: It is no regular file, or there is none.
        """
        try:
            _check_regular(said, os.lstat(real).st_mode)  # opening a device may do something
            descriptor = os.open(real, _FLAGS)
        except FileNotFoundError:
            hint = " `.expanduser()` makes a path of `~`." if said.startswith("~") else ""
            where = clean_text(str(real))
            raise Unreadable(f"There is no file {said}; it would be {where}.{hint}") from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check_regular(said, status.st_mode)
            yield file, File(said, real, status.st_size, _identity(status))

    def _original(self, found: File, encoding: str | None) -> Original:
        """Return the whole of a file, a text if it has an encoding; read when a client asks."""

        def content() -> str | bytes:
            _, real = self._located(found.path)
            with _explained(found.said), self._opened(found.said, real) as (file, now):
                if now.identity == found.identity:
                    data = file.read(found.size)
                    return data.decode(encoding, "replace") if encoding else data
            raise Unreadable(
                f"The file {found.said} has changed since the result that links to it: call the "
                "tool again."
            )

        mime_type = found.mime_type or ("text/plain" if encoding else BINARY)
        name = clean_text(found.path.stem) or "file"
        title = f"The file {found.said} ({mime_type}, {format_size(found.size)})"
        form = FileFormat(clean_text(found.path.suffix), mime_type, content, found.size)
        return Original(name, title, (form,), cost=0)


@contextmanager
def _explained(said: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = clean_text(error.strerror or describe_error(error))
        raise Unreadable(f"The file {said} cannot be read: {reason}.") from None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike `resolve`, raises nothing


def _check_regular(said: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "no file")
        raise Unreadable(f"{said} is not shown: it is {kind}, and only files are.")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _folder_text(said: str, folder: Path) -> str:
    count = 0
    with os.scandir(folder) as entries:
        for _ in entries:
            count += 1
            if count > MAX_ENTRIES:
                break
    number = f"more than {MAX_ENTRIES:,}" if count > MAX_ENTRIES else f"{count:,}"
    return (
        f"[{said} is a folder with {number} {'entry' if count == 1 else 'entries'}. The tool's "
        "author can return their names, `[path.name for path in folder.iterdir()]`, or one file.]"
    )
