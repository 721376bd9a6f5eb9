"""Files that tools return as paths: their content, by its type.

Runs in the user's kernel, on the thread of the call; a file that a result only links to is read on
the thread of who reads it. Only regular files within the notebook's folder and the allowed roots
are opened, whatever path leads to them, each once; nothing here waits for a file that has nothing
to read (a pipe, a device), and no more of a file is read than is shown or sent. What a path within
data is, its text, is `kernel.jsonable`'s business.
"""

import mimetypes
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Self, TypeAlias

from mcp_notebook.content import Audio, ContentBlock, Image, Resource, Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel import blocks as make
from mcp_notebook.kernel import pictures, sounds
from mcp_notebook.kernel.budget import Budget
from mcp_notebook.kernel.documents import BINARY, left_out, size_text
from mcp_notebook.kernel.file_texts import read_text, text_encoding
from mcp_notebook.kernel.originals import Form, Original
from mcp_notebook.kernel.stored_notebooks import notebook_blocks
from mcp_notebook.kernel.texts import clean, safe_message
from mcp_notebook.settings import Settings

MAX_FILES = 8
"""Paths of one list or dict whose files are shown; of more, all are shown as text."""
MAX_READ = 100 * 2**20
"""Bytes of a file that a client can read by a link."""
MAX_CONVERTED = 8 * 2**20
"""Bytes of HTML, a notebook or an SVG that are read to show what is in them."""
MAX_PICTURE = 64 * 2**20
"""Bytes of a picture's file that are read to show it."""
MAX_ENTRIES = 10_000
"""Entries of a folder that are counted."""

_BEGINNING = 8_192
_NO_FILES = tuple(Path(path) for path in ("/proc", "/sys"))
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # what is put in a file's place meanwhile may be a pipe
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_DISPLAYED = {
    "text/html": "text/html",
    "application/xhtml+xml": "text/html",
    "image/svg+xml": "image/svg+xml",
}
_TYPES = {  # what not every system knows, or knows as something else
    ".arrow": "application/vnd.apache.arrow.file",
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".ipynb": "application/x-ipynb+json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".py": "text/x-python",
    ".toml": "application/toml",
    ".ts": "text/plain",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link to itself"),
)


_Original: TypeAlias = Callable[[str | None], Original]
"""Makes a file's original, given the encoding of a text."""


class Unreadable(CallError):
    """A file cannot be shown; says which and why."""


@dataclass(frozen=True)
class _File:
    """A file that may be shown."""

    said: str
    """As the author wrote it."""
    path: Path
    """Where it really is."""
    size: int
    identity: tuple[int, ...]
    """Changes when the file does."""

    @property
    def mime_type(self) -> str | None:
        """What its name says."""
        guess, packed = mimetypes.guess_type(self.path.name, strict=False)
        return _TYPES.get(self.path.suffix.lower()) or (
            f"application/{packed}" if packed else guess
        )


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

    def blocks(self, path: Any, budget: Budget) -> list[ContentBlock]:
        """Make blocks of a file's content, or a sentence.

        Args:
            path: Anything that `is_path`.
            budget: What the result may take.
        """
        try:
            said, real = self._located(path)
            with _explained(said):
                if real.is_dir():
                    return [Text(_folder_text(said, real))]
                with self._opened(said, real) as (file, found):
                    return _content(file, found, budget, partial(self._original, found))
        except Unreadable as error:
            return [Text(f"[{error}]")]

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
            raise Unreadable(f"A {name} is no path: {safe_message(error)}.") from None
        said = clean(given)
        if not any(real.is_relative_to(root) for root in self._roots):
            raise Unreadable(self._outside(said, clean(os.path.abspath(given)), real))  # noqa: PTH100 - pathlib's keeps ".."
        if os.name == "posix" and any(real.is_relative_to(place) for place in _NO_FILES):
            raise Unreadable(f"The file {said} is not shown: it is a view of the system's.")
        return said, real

    def _outside(self, said: str, absolute: str, real: Path) -> str:
        target = clean(str(real))
        leads = "" if absolute == target else f" leads to {target}, which"
        own = "the notebook's folder" + (f" ({clean(str(self._folder))})" if self._folder else "")
        roots = os.pathsep.join(clean(str(root)) for root in (*self._allowed, real.parent))
        return (
            f"The file {said} is not shown: it{leads} is outside of {own} and the allowed roots. "
            f"To allow it, run `%env MCP_NOTEBOOK_ALLOWED_ROOTS={roots}`, `%reload_ext "
            "mcp_notebook` and the tools' cells again in the notebook, or set that variable before "
            "Jupyter starts."
        )

    @contextmanager
    def _opened(self, said: str, real: Path) -> Iterator[tuple[BinaryIO, _File]]:
        """Open a file, once, and tell what it is.

        Raises:
            Unreadable: It is no regular file, or there is none.
        """
        try:
            _check_regular(said, os.lstat(real).st_mode)  # opening a device may do something
            descriptor = os.open(real, _FLAGS)
        except FileNotFoundError:
            hint = " `.expanduser()` makes a path of `~`." if said.startswith("~") else ""
            where = clean(str(real))
            raise Unreadable(f"There is no file {said}; it would be {where}.{hint}") from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check_regular(said, status.st_mode)
            yield file, _File(said, real, status.st_size, _identity(status))

    def _original(self, found: _File, encoding: str | None) -> Original:
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
        name = clean(found.path.stem) or "file"
        title = f"The file {found.said} ({mime_type}, {size_text(found.size)})"
        form = Form(clean(found.path.suffix), mime_type, content, found.size)
        return Original(name, title, (form,), cost=0)


def _content(
    file: BinaryIO, found: _File, budget: Budget, original: _Original
) -> list[ContentBlock]:
    beginning = file.read(_BEGINNING)
    if not beginning:
        return [Text(f"[The file {found.said} is empty.]")]
    by_name = found.mime_type or ""
    file.seek(max(found.size - _BEGINNING, 0))
    encoding = text_encoding(beginning, file.read(_BEGINNING))
    is_picture = pictures.mime_type_of(beginning) or (
        by_name.startswith("image/") and encoding is None
    )
    if is_picture and found.size <= MAX_PICTURE:
        made = make.encoded_picture(_all(file, found.size), budget)
        shown = any(isinstance(block, Image) for block in made)
        if shown or (encoding is None and pictures.mime_type_of(beginning)):
            return made
    sound = sounds.mime_type_of(beginning)
    if sound is not None and found.size <= budget.picture_bytes:
        return sounds.sound(Audio(_all(file, found.size), sound), budget)
    if encoding is None or by_name == "application/pdf" or beginning.startswith(b"%PDF-"):
        return _binary(file, found, budget, original(None))
    return _text(file, found, encoding, budget, original)


def _text(
    file: BinaryIO, found: _File, encoding: str, budget: Budget, original: _Original
) -> list[ContentBlock]:
    text, whole = "", False
    made = _converted(file, found, encoding, budget)
    if not made:
        text, whole = read_text(file, found.size, encoding, budget.chars)
        text = clean(text)
        made = [Text(text)]
        if not text.strip():
            return [Text(f"[The file {found.said} holds nothing but white space.]")]
    return [
        *made,
        *(budget.keep(original(encoding)) if not whole and found.size <= MAX_READ else ()),
    ]


def _converted(
    file: BinaryIO, found: _File, encoding: str, budget: Budget
) -> list[ContentBlock] | None:
    """Make blocks of a text that is more to its readers than its source."""
    kind = _DISPLAYED.get(found.mime_type or "")
    is_notebook = found.path.suffix == ".ipynb"
    if found.size > MAX_CONVERTED or not (kind or is_notebook):
        return None
    source = _all(file, found.size).decode(encoding, "replace")
    if kind is None:
        return notebook_blocks(source, budget)
    return make.bundle_blocks({kind: source}, budget)


def _binary(file: BinaryIO, found: _File, budget: Budget, original: Original) -> list[ContentBlock]:
    mime_type = original.forms[0].mime_type
    if found.size <= budget.picture_bytes:
        return [Resource(found.path.as_uri(), _all(file, found.size), mime_type)]
    if found.size > MAX_READ:
        return [Text(f"[{original.title} is too large to be sent, at most {size_text(MAX_READ)}.]")]
    return left_out(original.title, original, budget)


@contextmanager
def _explained(said: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = clean(error.strerror or safe_message(error))
        raise Unreadable(f"The file {said} cannot be read: {reason}.") from None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike `resolve`, raises nothing


def _all(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    return file.read(size)  # not what has been added meanwhile


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
