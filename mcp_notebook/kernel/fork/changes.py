"""Finds out what a call changed: variables and what they hold, files, and the process's own state.

Runs in a copy of the kernel, before and after the call of a trial. Compares contents, not
representations: no method of the user's objects is called. What it cannot look into (an open
connection, an object of an unknown library) counts as unchanged while it is the same object.
"""

import functools
import inspect
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

from mcp_notebook.kernel.safe.libraries import is_instance

MAX_FILES = 20_000
"""Files and folders that are compared; in a larger folder, none are."""
_MAX_PARTS = 1_000_000
"""Parts of one variable that are compared; a variable with more is not looked into."""
_NOT_OURS = frozenset({"__pycache__", "node_modules"})
"""Folders that are not compared, besides hidden ones."""
_PLAIN = (bool, int, float, complex, type(None))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FILE_EVENTS = frozenset(
    ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate")
)
_PROCESS_EVENTS = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")


class Change(Struct, frozen=True):
    """Something that was changed."""

    kind: str
    """"new name", "removed name", "rebound name" or "changed value" of a variable; "new file",
    "changed file" or "removed file"; "environment"; "working directory"; "wrote"
    for a file anywhere, "socket" or "process" for what was opened or started."""
    name: str = ""
    """The variable, the path relative to the working directory, or the environment variable."""


class Snapshot:
    """The state of this process at one moment.

    Args:
        namespace: The user's variables.
        hidden: Those of them that are IPython's.
    """

    def __init__(self, namespace: Mapping[str, Any], hidden: Mapping[str, Any]) -> None:
        names = [name for name in namespace if name not in hidden and not name.startswith("_")]
        self.values = {name: namespace[name] for name in names}
        """Held, so that no other object gets the identity of one of them."""
        self.digests = {name: _digest(value) for name, value in self.values.items()}
        self.environment = dict(os.environ)
        self.folder = _find_folder()
        self.files = _list_files(self.folder)
        self._effects: dict[str, None] = {}
        # A hook cannot be removed; the process is a copy that ends with its call.
        sys.addaudithook(self._note_effect)

    def _note_effect(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what the audited code does outside this process."""
        if event == "open":
            flags = arguments[2]
            if flags & _WRITING and arguments[0] != os.devnull:
                self._effects["wrote"] = None
        elif event in _FILE_EVENTS:
            self._effects["wrote"] = None
        elif event.startswith("socket."):
            self._effects["socket"] = None
        elif event.startswith(_PROCESS_EVENTS):
            self._effects["process"] = None

    def compare(self, later: "Snapshot") -> Iterator[Change]:
        """Yield what has changed between this snapshot and a later one."""
        yield from map(Change, tuple(self._effects))
        yield from self._compare_values(later)
        if self.folder != later.folder:
            yield Change("working directory", str(later.folder))
        else:
            yield from self._compare_files(later)
        for name in sorted(self.environment.keys() | later.environment.keys()):
            if self.environment.get(name) != later.environment.get(name):
                yield Change("environment", name)

    def _compare_values(self, later: "Snapshot") -> Iterator[Change]:
        for name in later.values.keys() - self.values.keys():
            yield Change("new name", name)
        for name, value in self.values.items():
            if name not in later.values:
                yield Change("removed name", name)
                continue
            before, after = self.digests[name], later.digests[name]
            is_same = value is later.values[name]
            if before == after and (is_same or before is not None):
                continue
            if not is_same:
                yield Change("rebound name", name)
            elif before is not None and after is not None:
                yield Change("changed value", name)

    def _compare_files(self, later: "Snapshot") -> Iterator[Change]:
        if self.files is None or later.files is None:
            return
        for path in sorted(self.files.keys() | later.files.keys()):
            before, after = self.files.get(path), later.files.get(path)
            if before is None:
                yield Change("new file", path)
            elif after is None:
                yield Change("removed file", path)
            elif before != after:
                yield Change("changed file", path)


# -- files -----------------------------------------------------------------------------------------


def _find_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return None


def _list_files(folder: Path | None) -> dict[str, tuple[int, ...]] | None:
    """Return what tells versions of files apart, by relative path; None if there are too many.

    Notebooks are left out, which their editors save at any moment.
    """
    files: dict[str, tuple[int, ...]] = {}
    for parent, folders, names in os.walk(folder or os.devnull):
        folders[:] = [
            name for name in folders if not name.startswith(".") and name not in _NOT_OURS
        ]
        for name in (*names, *folders):
            path = os.path.join(parent, name)  # noqa: PTH118 - thousands of them
            try:
                status = os.lstat(path)
            except OSError:  # it has just been removed
                continue
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if name in folders:  # its time changes with its files
                version = (0, 0, 0)
            if not name.endswith(".ipynb"):
                files[os.path.relpath(path, folder)] = version
        if len(files) > MAX_FILES:
            return None
    return files


# -- values ----------------------------------------------------------------------------------------


def _digest(value: Any) -> bytes | None:
    """Return a hash of what a value holds; None if that cannot be found out."""
    digest = _Digest()
    try:
        digest.add(value)
    except Exception:  # noqa: BLE001 - values of any library
        return None
    return None if digest.is_blind else digest.hash.digest()


class _Digest:
    """The hash of one value."""

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)
        self.is_blind = True
        """Whether nothing of it could be looked into."""
        self._parts = 0
        self._open: set[int] = set()

    def add(self, value: Any) -> None:
        """Add a value with all that it holds.

        Raises:
            Exception: It is too large, or a library failed.
        """
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise ValueError("too many parts")
        kind = type(value)
        self.hash.update(f"{kind.__module__}.{kind.__qualname__}:".encode())
        if id(value) in self._open:
            return
        self._open.add(id(value))
        try:
            if not self._add_content(value):
                self.hash.update(f"{id(value)};".encode())
                return
            self.is_blind = False
        finally:
            self._open.discard(id(value))

    def _add_content(self, value: Any) -> bool:
        """Add what a value holds; return whether that is known."""
        if isinstance(value, _PLAIN):
            self.hash.update(f"{value!r};".encode())
        elif isinstance(value, str):
            self._add_bytes(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | bytearray):
            self._add_bytes(value)
        elif isinstance(value, dict | list | tuple | deque | set | frozenset):
            self._add_items(value)
        else:
            return self._add_table(value) or self._add_attributes(value)
        return True

    def _add_bytes(self, data: Any) -> None:
        self.hash.update(f"{len(data)}:".encode())
        self.hash.update(data)

    def _add_items(self, value: Any) -> None:
        self.hash.update(f"{len(value)}:".encode())
        if isinstance(value, dict):
            for key, item in dict.items(value):
                self.add(key)
                self.add(item)
        elif isinstance(value, set | frozenset):  # in no order
            for digest in sorted(_digest(item) or b"" for item in value):
                self.hash.update(digest)
        else:
            for item in value:
                self.add(item)

    def _add_table(self, value: Any) -> bool:
        """Add an array or a table; return whether it is one."""
        if is_instance(value, "numpy.ndarray"):
            self._add_array(value)
        elif is_instance(value, "pandas.DataFrame"):
            for position in range(value.shape[1]):
                self._add_column(value.iloc[:, position])
            self._add_column(value.index.to_series())
            self.add(list(value.columns))
            self.add(dict(value.attrs))
        elif is_instance(value, "pandas.Series"):
            self._add_column(value)
            self._add_column(value.index.to_series())
            self.add((value.name, dict(value.attrs)))
        else:
            return False
        return True

    def _add_array(self, array: Any) -> None:
        self.add((str(array.dtype), array.shape))
        if array.dtype.hasobject:
            self.add(array.ravel().tolist())
        else:
            numpy = sys.modules["numpy"]
            flat = numpy.ascontiguousarray(numpy.asarray(array)).reshape(-1)
            self.hash.update(flat.view(numpy.uint8).data)
        if is_instance(array, "numpy.ma.MaskedArray"):
            self._add_array(numpy.asarray(sys.modules["numpy"].ma.getmaskarray(array)))

    def _add_column(self, column: Any) -> None:
        self.add(str(column.dtype))
        try:
            hashes = sys.modules["pandas"].util.hash_pandas_object(column, index=False)
        except TypeError:  # lists and dicts in it
            self.add(column.tolist())
        else:
            self._add_array(hashes.to_numpy())

    def _add_attributes(self, value: Any) -> bool:
        """Add an object's attributes, if its class is the notebook's or that of a model that fits.

        Returns:
            Whether it is.
        """
        kind = type(value)
        module = kind.__module__
        if isinstance(value, type) or not (module == "__main__" or module.startswith("sklearn.")):
            return False
        attributes = object.__getattribute__(value, "__dict__")
        self.add({name: item for name, item in attributes.items() if not _is_cache(kind, name)})
        return True


def _is_cache(kind: type, name: str) -> bool:
    """Return whether an attribute is filled by reading."""
    return name.startswith("_") or isinstance(
        inspect.getattr_static(kind, name, None), functools.cached_property
    )
