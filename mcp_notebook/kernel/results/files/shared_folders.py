"""Decides which files and folders clients may see, in results and as arguments, and opens them.

Runs in the user's kernel, on the thread of the call; a file behind a link is read on a thread of
the resource store. A path is resolved, checked, and then opened folder by folder without following
symlinks, so that nothing can be swapped between check and opening. Nothing here blocks on a pipe or
a device.

A client is told only that a file is not shared. The notebook is told where the file is and how to
share it, by `RefusedFiles`. The content of files is left to `returned_files`.
"""

import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self, TypeAlias, TypeVar

from msgspec import Struct

from mcp_notebook.errors import CallError
from mcp_notebook.kernel.safe.foreign_code import guard
from mcp_notebook.kernel.safe.interrupter import Shield
from mcp_notebook.kernel.safe.text import clean_text, describe_error, get_type_name
from mcp_notebook.settings.private_files import READ_FLAGS
from mcp_notebook.settings.settings import Settings

MAX_REFUSED = 8
"""Maximum refusals that are kept for the notebook."""
MAX_LISTED = 500
"""Maximum files that `SharedFolders.list_files` returns."""
_MAX_VISITED = 5_000
"""Maximum files and folders that it looks at."""

_SYSTEM_VIEWS = tuple(Path(path) for path in ("/proc", "/sys"))
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link to itself"),
)
_FOLDER_FLAGS = (
    getattr(os, "O_PATH", os.O_RDONLY)  # needs no permission to list the folder
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_CAN_WALK = {os.open, os.stat} <= os.supports_dir_fd
"""Whether files can be opened relative to an open folder; not on Windows."""

_Check: TypeAlias = Callable[[Path, os.stat_result], None]
_Result = TypeVar("_Result")
"""Raises `Unreadable` if a file or a parent folder may not be opened."""


class Unreadable(CallError):
    """A file cannot be shown; the message tells the client which and why."""


class NoSuchFile(Unreadable):
    """There is no such file in the shared folders; a path may be meant for output."""


class RefusedFiles:
    """Why files were not shown, for the notebook's user; thread-safe.

    Only the last `MAX_REFUSED` different reasons are kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """Number of refusals so far."""
        return self._count

    def add(self, reason: str) -> None:
        """Keep a reason."""
        with self._lock:
            self._count += 1
            self._numbers.pop(reason, None)
            self._numbers[reason] = self._count
            if len(self._numbers) > MAX_REFUSED:
                del self._numbers[next(iter(self._numbers))]

    def list_reasons(self, after: int = 0) -> list[str]:
        """Return the reasons, oldest first.

        Args:
            after: Return only those after this `count`.
        """
        with self._lock:
            return [reason for reason, number in self._numbers.items() if number > after]


class OpenPath(Struct, frozen=True):
    """A file or a folder that may be shown, open for reading."""

    name: str
    """Its path as the author wrote it, cleaned."""
    path: Path
    """Its absolute path without symlinks."""
    status: os.stat_result
    """The status of the open file."""
    descriptor: int | None
    """Closed by `SharedFolders.read`; None for a folder on a system that cannot open folders."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.status.st_size

    @property
    def identity(self) -> tuple[int, ...]:
        """Changes with the file."""
        status = self.status
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def open(self) -> BinaryIO:
        """Return the file, which is not closed by closing this."""
        assert self.descriptor is not None
        return os.fdopen(self.descriptor, "rb", closefd=False)


class _Place(Struct, frozen=True):
    """A path that lies in a shared folder."""

    name: str
    real: Path
    root: Path
    """The innermost shared folder that contains it."""


class SharedFolders:
    """The part of the file system that clients may see; only `refused` changes.

    Args:
        folder: The notebook's folder, if it has one.
        allowed: Other folders and files that the author allows.
        private: Files and folders that are never shared.
    """

    def __init__(
        self, folder: Path | None, allowed: Sequence[Path] = (), private: Sequence[Path] = ()
    ) -> None:
        real = None if folder is None else _resolve(folder)
        # A kernel without a folder starts in "/", which allows nothing.
        self._folder = None if real is None or real == Path(real.anchor) else real
        self._allowed = tuple(map(_resolve, allowed))
        self._roots = (*((self._folder,) if self._folder else ()), *self._allowed)
        self._private = tuple(private)
        self.refused: RefusedFiles = RefusedFiles()
        """The refusals, for the notebook."""

    @property
    def folder(self) -> Path | None:
        """The notebook's folder; None if it has none, or is the root of the file system."""
        return self._folder

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the folders of the settings, and the kernel's current folder."""
        try:
            folder = Path.cwd()
        except OSError:  # it was removed
            folder = None
        return cls(folder, settings.allowed_roots, (settings.home, settings.token_path))

    def describe_home(self) -> str | None:
        """Return a warning if the notebook's folder is or contains the user's home folder."""
        with suppress(RuntimeError):  # the user has no home folder
            home = _resolve(Path.home())
            if self._folder is not None and home.is_relative_to(self._folder):
                what = "is" if home == self._folder else "contains"
                return (
                    f"This notebook's folder ({clean_text(str(self._folder))}) {what} your home "
                    "folder: a tool that returns a `Path` can send clients any file in it that is "
                    "not hidden. To share less, move the notebook to a folder of its own."
                )
        return None

    def read(
        self, path: Any, function: Callable[[OpenPath], _Result], name: str | None = None
    ) -> _Result:
        """Open a file or a folder, run a function on it, and close it.

        Args:
            path: A path or a path-like object that a tool returned.
            function: Takes the open file; its `OSError` is reported as a failed read.
            name: Its name in messages; None: as written.

        Returns:
            What the function returns.

        Raises:
            Unreadable: It may not be shown, is neither a file nor a folder, or cannot be read.
        """
        place = self._locate(path, name)
        private = _identify(self._private)

        def check(part: Path, status: os.stat_result) -> None:
            if (status.st_dev, status.st_ino) in private:
                self._refuse_private(place)
            if part != place.root and part.is_relative_to(place.root) and _is_hidden(status):
                self._refuse_hidden(place, part)
            if part == place.real:
                _check_kind(place.name, status.st_mode)

        with _explain_errors(place.name), Shield() as shield:
            try:
                descriptor = (_open_by_folders if _CAN_WALK else _open_by_name)(place.real, check)
            except FileNotFoundError:
                self._refuse_missing(place)
            try:
                status = os.lstat(place.real) if descriptor is None else os.fstat(descriptor)
                check(place.real, status)  # the file may have been replaced
                return shield.run(function, OpenPath(place.name, place.real, status, descriptor))
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    def read_bytes(self, path: Path, name: str, limit: int) -> bytes:
        """Return the first bytes of a file.

        Args:
            path: Its path.
            name: Its name in messages.
            limit: The greatest number of bytes to return.

        Raises:
            Unreadable: As `read`, or it is a folder.
        """

        def read(opened: OpenPath) -> bytes:
            if opened.is_folder:
                raise Unreadable(f"{name} is a folder, not a file.")
            with opened.open() as file:
                return file.read(limit)

        return self.read(path, read, name)

    def list_files(self) -> list[str]:
        """Return files below the notebook's folder that are not hidden, relative to it.

        The nearest come first; at most `MAX_LISTED`. Symlinks are left out.
        """
        found: list[str] = []
        waiting = deque([] if self._folder is None else [self._folder])
        visited = 0
        while waiting and len(found) < MAX_LISTED and visited < _MAX_VISITED:
            folder = waiting.popleft()
            with suppress(OSError), os.scandir(folder) as scanned:
                entries = list(islice(scanned, _MAX_VISITED - visited))
                visited += len(entries)
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.startswith(".") or _is_hidden(entry.stat(follow_symlinks=False)):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(folder / entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        found.append(os.path.relpath(entry.path, self._folder))
        return found[:MAX_LISTED]

    def _locate(self, path: Any, name: str | None) -> _Place:
        """Resolve a path and check that it is shared; nothing but symlinks is read.

        Raises:
            Unreadable: It is not a path, or not shared.
        """

        def refuse(error: BaseException) -> NoReturn:
            kind = get_type_name(path)
            message = f"An object of type {kind} is not a path: {describe_error(error)}."
            raise Unreadable(message) from None

        # A path-like object may run any code, and its text may contain NUL.
        path_text = guard(lambda: os.fsdecode(os.fspath(path)), recover=refuse)
        real = Path(guard(lambda: os.path.realpath(path_text), recover=refuse))
        name = clean_text(path_text) if name is None else name
        roots = [root for root in self._roots if real.is_relative_to(root)]
        if not roots:
            absolute = os.path.abspath(path_text)  # noqa: PTH100 - pathlib keeps ".."
            self._refuse_outside(name, absolute, real)
        place = _Place(name, real, max(roots, key=lambda root: len(root.parts)))
        if os.name == "posix" and any(real.is_relative_to(view) for view in _SYSTEM_VIEWS):
            raise Unreadable(f"The file {name} is not shared: it is a virtual file of the system.")
        hidden = [part for part in (real, *real.parents) if part.name.startswith(".")]
        if hidden and hidden[0] != place.root and hidden[0].is_relative_to(place.root):
            self._refuse_hidden(place, hidden[0])
        return place

    # -- refusals ----------------------------------------------------------------------------------

    def _refuse_outside(self, name: str, absolute: str, real: Path) -> NoReturn:
        leads = "" if absolute == str(real) else f" leads to {clean_text(str(real))}, which"
        folder = "the notebook's folder" + (
            f" ({clean_text(str(self._folder))})" if self._folder else ""
        )
        reason = f"it{leads} is outside {folder} and the allowed roots"
        self._refuse(name, f"{reason}. {self._explain_allowing(real.parent)}")

    def _refuse_hidden(self, place: _Place, hidden: Path) -> NoReturn:
        how = "hidden" if hidden == place.real else "in a hidden folder"
        reason = f"{clean_text(str(place.real))} is {how}"
        self._refuse(place.name, f"{reason}. {self._explain_allowing(hidden)}")

    def _refuse_private(self, place: _Place) -> NoReturn:
        target = clean_text(str(place.real))
        self._refuse(place.name, f"{target} belongs to mcp-notebook and is never shared.")

    def _explain_allowing(self, path: Path) -> str:
        if os.pathsep in str(path):
            return f"A folder with {os.pathsep!r} in its path cannot be allowed: move the file."
        # A literal, since the client may have named the file: IPython would expand an `%env` line.
        roots = os.pathsep.join(str(root) for root in (*self._allowed, path))
        return (
            f"To allow it, run `import os; os.environ['MCP_NOTEBOOK_ALLOWED_ROOTS'] = {roots!a}` "
            "and `%reload_ext mcp_notebook` in the notebook, or set that variable before Jupyter "
            "starts."
        )

    def _refuse(self, name: str, reason: str) -> NoReturn:
        """Tell the notebook why a file is not shared, and the client only that it is not."""
        self.refused.add(f"The file {name} is not shared: {reason}")
        raise Unreadable(
            f"The file {name} is not shared: it is outside the folders that the notebook shares. "
            "`%mcp status` in the notebook says why."
        )

    def _refuse_missing(self, place: _Place) -> NoReturn:
        hint = " `.expanduser()` expands `~`." if place.name.startswith("~") else ""
        where = clean_text(str(place.real))
        self.refused.add(f"There is no file {place.name}; it would be {where}.{hint}")
        raise NoSuchFile(f"There is no file {place.name}.{hint}") from None


# -- opening ---------------------------------------------------------------------------------------


def open_without_links(path: Path, flags: int) -> int:
    """Open a file, but fail if a symlink is in its path.

    Args:
        path: An absolute path.
        flags: As for `os.open`.

    Raises:
        OSError: A symlink is in the path, or the file cannot be opened.
    """
    if _CAN_WALK:
        return _open_by_folders(path, None, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if os.path.realpath(path) != str(path):
        raise OSError(errno.ELOOP, "it was replaced by a link", str(path))
    return os.open(path, flags, 0o666)


def _open_by_folders(real: Path, check: _Check | None, flags: int = READ_FLAGS) -> int:
    """Open a file from the file system's root on, without following symlinks.

    Args:
        real: An absolute path without symlinks; a symlink in it has replaced a folder since.
        check: Checks each open folder, and the file before it is opened, since opening a device
            may have effects.
        flags: As for `os.open`.
    """
    parent = os.open(real.anchor, _FOLDER_FLAGS)
    try:
        for folder in [*reversed(real.parents)][1:]:
            child = os.open(folder.name, _FOLDER_FLAGS, dir_fd=parent)
            os.close(parent)
            parent = child
            if check is not None:
                check(folder, os.fstat(parent))
        name = real.name or real.anchor
        if check is not None:
            check(real, os.stat(name, dir_fd=parent, follow_symlinks=False))
        return os.open(name, flags, 0o666, dir_fd=parent)
    finally:
        os.close(parent)


def _open_by_name(real: Path, check: _Check) -> int | None:
    """The same for systems that cannot open folders: compare the path afterwards."""
    for part in [*reversed(real.parents), real]:
        check(part, os.lstat(part))
    if real.is_dir():
        return None
    descriptor = os.open(real, READ_FLAGS)
    with suppress(OSError):
        is_same = os.path.samestat(os.lstat(real), os.fstat(descriptor))
        if is_same and os.path.realpath(real) == str(real):
            return descriptor
    os.close(descriptor)
    raise OSError(errno.ELOOP, "it was replaced while it was being opened")


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike `Path.resolve`, never raises


def _identify(paths: Sequence[Path]) -> set[tuple[int, int]]:
    """Return the identities of the paths that exist."""
    identities = set()
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            identities.add((status.st_dev, status.st_ino))
    return identities


def _is_hidden(status: os.stat_result) -> bool:
    """Return whether macOS or Windows hides a file, such as ``~/Library``."""
    flags: int = getattr(status, "st_flags", 0)
    attributes: int = getattr(status, "st_file_attributes", 0)
    return bool(flags & stat.UF_HIDDEN or attributes & stat.FILE_ATTRIBUTE_HIDDEN)


def _check_kind(name: str, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not a file")
        raise Unreadable(f"{name} is not shared: it is {kind}, and only files are.")


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = clean_text(error.strerror or describe_error(error))
        raise Unreadable(f"The file {name} cannot be read: {reason}.") from None
