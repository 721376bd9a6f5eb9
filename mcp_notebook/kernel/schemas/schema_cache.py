"""An on-disk cache of schemas, so that a restarted notebook need not build them again.

Runs in the user's kernel, at definition, on any thread. The key is a fingerprint of everything that
a schema is made from. Anything without an exact fingerprint is not cached, so that a cached schema
is never wrong: an author's own classes, such as models and enumerations, may run any code.

The files are in a folder below `Settings.home`, which is the same for notebooks and headless
kernels: a desktop client's child process has no XDG variables, and would look for the user's cache
elsewhere. Each file holds one schema. It is named after its key, its first line is a digest of the
rest, and it is written to a temporary file and renamed. So any number of processes may read, write
and clear the cache at once; a damaged or foreign file is a cache miss. The number and age of files
are limited.

If the disk cannot be read or written, schemas are built each time.
"""

import contextlib
import hashlib
import io
import json
import pickle
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ForwardRef

import pydantic
import pydantic_core
from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typing_extensions import override

from mcp_notebook._version import __version__
from mcp_notebook.settings.private_files import read_private, write_private

MAX_FILES = 5_000
"""Schemas in the cache; the least recently used are removed."""
MAX_AGE = 90 * 86_400.0
"""Seconds after its last use that a schema is kept."""
_TOUCH = 86_400.0
"""Seconds after which a used file gets a new time: once a day is enough for pruning."""
_SUFFIX = ".json"
_MAX_SIZE = 2**24
"""Bytes; a larger file is a cache miss."""


class SchemaCache:
    """The cached schemas of one user; any thread may use it.

    Args:
        folder: Where the files are; created by the first `put`.
        max_files: Schemas that are kept; the least recently used are removed.
    """

    def __init__(self, folder: Path, *, max_files: int = MAX_FILES) -> None:
        self._folder, self._max_files = folder, max_files
        self._sources: bytes | None = None
        self._pruned = False

    def key(self, *parts: Any) -> str | None:
        """Return the cache key for these parts; None if they have no exact fingerprint.

        Args:
            parts: Everything that the schema depends on.
        """
        try:
            encoded = _make_fingerprint(parts)
        except Exception:  # noqa: BLE001 - a class of the author's may take part, and raise anything
            return None
        if self._sources is None:
            self._sources = _hash_sources()
        return hashlib.sha256(self._sources + encoded).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the JSON object under this key; None if it is missing or damaged."""
        path = self._path(key)
        try:
            digest, _, body = read_private(path, _MAX_SIZE).decode("ascii").partition("\n")
            if digest != _compute_digest(key, body):
                return None
            if time.time() - path.stat().st_mtime > _TOUCH:
                path.touch()
            value = json.loads(body)
        except (OSError, ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Store a JSON object under this key."""
        # Not sorted: the order of a schema's properties is the signature's.
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            body = json.dumps(value, separators=(",", ":"), allow_nan=False)
            write_private(self._path(key), f"{_compute_digest(key, body)}\n{body}")
            if not self._pruned:
                self._pruned = True
                _prune(self._folder, self._max_files)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"


def _compute_digest(key: str, body: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode()).hexdigest()


def _hash_sources() -> bytes:
    """Return a hash of the code that makes schemas, and of the libraries it uses."""
    try:
        parser = version("docstring-parser")
    except PackageNotFoundError:
        parser = "?"
    versions: Sequence[str] = (
        __version__,
        pydantic.VERSION,
        pydantic_core.__version__,
        parser,
        sys.version,
    )
    code = hashlib.sha256(repr(versions).encode())
    # Any module of this room and its subfolders may take part in what a schema is.
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        with contextlib.suppress(OSError):  # in a zip archive, say: the version must do
            code.update(path.read_bytes())
    return code.digest()


def _prune(folder: Path, max_files: int) -> None:
    used = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):  # another process may prune as well
            used.append((path.stat().st_mtime, path))
    used.sort(reverse=True)
    oldest = time.time() - MAX_AGE
    for number, (when, path) in enumerate(used):
        if number >= max_files or when < oldest:
            with contextlib.suppress(OSError):
                path.unlink()


# -- fingerprints ---------------------------------------------------------------------------------

_KNOWN = frozenset(
    (
        *("abc", "builtins", "collections", "datetime", "decimal", "enum", "pathlib", "types"),
        *("typing", "uuid", "functools", "_functools", "operator", "_operator"),
        *("annotated_types", FieldInfo.__module__, type(PydanticUndefined).__module__),
    )
)
"""Modules whose versions are a part of the key; other code could be any. All are loaded before a
file of the author's could take their names, as a `calendar.py` beside the notebook does."""
_GENERAL = type(Field(pattern="").metadata[0])
"""The class in which a `Field` keeps a pattern and other constraints; it has no public name."""


class _Fingerprint(pickle.Pickler):
    """Writes type hints and defaults; refuses what depends on code that the key does not tell."""

    @override
    def reducer_override(self, value: Any) -> Any:
        if type(value) is _GENERAL:
            return dict, (sorted(vars(value).items()),)
        # By name, a pickle has an alias or a type variable of the author's, and a name in a string.
        modules = {getattr(each, "__module__", None) or "" for each in (type(value), value)}
        known = all(name in _KNOWN or name.partition(".")[0] in _KNOWN for name in modules - {""})
        if not known or type(value) is ForwardRef:
            raise pickle.PicklingError
        return NotImplemented


def _make_fingerprint(value: Any) -> bytes:
    """Return bytes that identify a type hint, a default, or a container of these."""
    file = io.BytesIO()
    pickler = _Fingerprint(file, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True  # else whether two equal parts are one object would count
    pickler.dump(value)
    return file.getvalue()
