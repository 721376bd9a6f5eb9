"""Opens the files whose paths tools return, and decides which of them may be opened.

Runs in the user's kernel, on the thread of the call; a file behind a link is read on a thread of
the resource store. Only regular files in the notebook's folder and the allowed roots are opened,
whatever path leads to them, and each of them once. Nothing here waits for a file that has nothing
to read, such as a pipe or a device.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NoReturn, Self, TypeAlias

from mcp_notebook.content import Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.blocks.embedded import BINARY, format_size
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.blocks.piece import Piece
from mcp_notebook.kernel.results.data_files import is_data_file, read_data_file
from mcp_notebook.kernel.results.file_contents import FileInfo, render_file
from mcp_notebook.kernel.safe.foreign_code import run_guarded
from mcp_notebook.kernel.safe.text import clean_text, describe_error, get_type_name
from mcp_notebook.private_files import READ_FLAGS
from mcp_notebook.settings import Settings
from mcp_notebook.wording import count

MAX_FILES = 8
"""Most paths in a list or dict for which their files are shown, rather than the paths as text."""
MAX_ENTRIES = 10_000
"""Most entries of a folder that are counted."""

_SYSTEM_VIEWS = tuple(Path(path) for path in ("/proc", "/sys"))
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link to itself"),
)

RenderData: TypeAlias = Callable[[Any], list[Piece]]
"""Renders what was read of a file."""


class Unreadable(CallError):
    """A file cannot be shown; the message says which one and why."""


def is_path(value: Any) -> bool:
    """Tell whether a value is a path on this system; a string is not."""
    if isinstance(value, PurePath):
        return isinstance(value, Path)
    return isinstance(value, os.PathLike)


class Files:
    """The part of the file system that results may show; immutable.

    Args:
        folder: The notebook's folder, if it has one.
        roots: Folders that its author allows besides.
    """

    def __init__(self, folder: Path | None, roots: Sequence[Path] = ()) -> None:
        real = None if folder is None else _resolve(folder)
        # A kernel that has no folder is started in "/", which allows nothing.
        self._folder = None if real is None or real == Path(real.anchor) else real
        self._allowed = tuple(map(_resolve, roots))
        self._roots = (*((self._folder,) if self._folder else ()), *self._allowed)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the files that the settings allow, with the current folder of the kernel."""
        try:
            folder = Path.cwd()
        except OSError:  # it was removed
            folder = None
        return cls(folder, settings.allowed_roots)

    def render(
        self, path: Any, budget: Budget, render_data: RenderData | None = None
    ) -> list[Piece]:
        """Render the content of a file, or a sentence that says why it is not shown.

        Args:
            path: A value for which `is_path` is true.
            budget: The limits of the result.
            render_data: Renders a table or an array; without it, the file is shown as any other.
        """
        try:
            name, real = self._locate(path)
            with _explain_errors(name):
                if real.is_dir():
                    return [Piece(Text(_describe_folder(name, real)))]
                with self._open(name, real) as (file, info):
                    describe_original = partial(self._describe_original, info)
                    if render_data is None or not info.size or not is_data_file(info):
                        return render_file(file, info, budget, describe_original)
                    data = read_data_file(file, info)
                    notes = [Piece(Text(f"[{data.note}]"))] if data.note else []
                    if data.value is None:
                        return [*render_file(file, info, budget, describe_original), *notes]
                    # Not each table is all that is in its file: of 1.50 it has 1.5.
                    links = budget.keep(describe_original(data.encoding))
                    return [*notes, *render_data(data.value), *map(Piece, links)]
        except Unreadable as error:
            return [Piece(Text(f"[{error}]"))]

    def _locate(self, path: Any) -> tuple[str, Path]:
        """Return a path as its author wrote it, and as it is without links.

        Raises:
            Unreadable: It is not a path, or leads to where results may not read.
        """

        def refuse(error: BaseException) -> NoReturn:
            kind = get_type_name(path)
            message = f"An object of type {kind} is not a path: {describe_error(error)}."
            raise Unreadable(message) from None

        # The methods of a path may run any code, and its text may contain a NUL.
        path_text = run_guarded(lambda: os.fsdecode(os.fspath(path)), refuse)
        real = Path(run_guarded(lambda: os.path.realpath(path_text), refuse))
        name = clean_text(path_text)
        if not any(real.is_relative_to(root) for root in self._roots):
            absolute = clean_text(os.path.abspath(path_text))  # noqa: PTH100 - pathlib keeps ".."
            raise Unreadable(self._explain_outside(name, absolute, real))
        if os.name == "posix" and any(real.is_relative_to(place) for place in _SYSTEM_VIEWS):
            raise Unreadable(f"The file {name} is not shown: it is a view of the system's.")
        return name, real

    def _explain_outside(self, name: str, absolute: str, real: Path) -> str:
        target = clean_text(str(real))
        leads = "" if absolute == target else f" leads to {target}, which"
        folder = "the notebook's folder" + (
            f" ({clean_text(str(self._folder))})" if self._folder else ""
        )
        roots = os.pathsep.join(clean_text(str(root)) for root in (*self._allowed, real.parent))
        return (
            f"The file {name} is not shown: it{leads} is outside of {folder} and the allowed "
            f"roots. To allow it, run `%env MCP_NOTEBOOK_ALLOWED_ROOTS={roots}` and "
            "`%reload_ext mcp_notebook` in the notebook, or set that variable before Jupyter "
            "starts."
        )

    @contextmanager
    def _open(self, name: str, real: Path) -> Iterator[tuple[BinaryIO, FileInfo]]:
        """Open a file and describe it.

        Raises:
            Unreadable: There is no such file, or it is not a regular one.
        """
        try:
            _check_regular(name, os.lstat(real).st_mode)  # opening a device may do something
            # Not `open`: the file may be replaced by a pipe or a link meanwhile.
            descriptor = os.open(real, READ_FLAGS)
        except FileNotFoundError:
            hint = " `.expanduser()` makes a path of `~`." if name.startswith("~") else ""
            where = clean_text(str(real))
            raise Unreadable(f"There is no file {name}; it would be {where}.{hint}") from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check_regular(name, status.st_mode)
            yield file, FileInfo(name, real, status.st_size, _get_identity(status))

    def _describe_original(self, info: FileInfo, encoding: str | None) -> Original:
        """Describe a whole file, which is read when a client asks; with an encoding, as text."""

        def read() -> str | bytes:
            _, real = self._locate(info.path)
            with _explain_errors(info.name), self._open(info.name, real) as (file, now):
                if now.identity == info.identity:
                    data = file.read(info.size)
                    return data.decode(encoding, "replace") if encoding else data
            raise Unreadable(
                f"The file {info.name} has changed since the result that links to it: call the "
                "tool again."
            )

        mime_type = info.mime_type or ("text/plain" if encoding else BINARY)
        stem = clean_text(info.path.stem) or "file"
        title = f"The file {info.name} ({mime_type}, {format_size(info.size)})"
        file_format = FileFormat(clean_text(info.path.suffix), mime_type, read, info.size)
        return Original(stem, title, (file_format,), cost=0)


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = clean_text(error.strerror or describe_error(error))
        raise Unreadable(f"The file {name} cannot be read: {reason}.") from None


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike `Path.resolve`, never raises


def _check_regular(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not a file")
        raise Unreadable(f"{name} is not shown: it is {kind}, and only files are.")


def _get_identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _describe_folder(name: str, folder: Path) -> str:
    with os.scandir(folder) as entries:
        number = sum(1 for _ in islice(entries, MAX_ENTRIES + 1))
    has_more = number > MAX_ENTRIES
    number_text = (
        f"more than {MAX_ENTRIES:,} entries" if has_more else count(number, "entry", "entries")
    )
    return (
        f"[{name} is a folder with {number_text}. The tool's "
        "author can return their names, `[path.name for path in folder.iterdir()]`, or one file.]"
    )
