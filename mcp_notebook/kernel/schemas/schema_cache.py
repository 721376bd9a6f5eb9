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

import collections.abc
import contextlib
import hashlib
import json
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import annotated_types
import pydantic
import pydantic_core
from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

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
            encoded = make_fingerprint(parts)
        except (NotCacheable, RecursionError):
            return None
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

_CLASSES = (
    *(bool, int, float, str, bytes, type(None), object, list, dict, tuple, set, frozenset),
    *(date, datetime, clock_time, timedelta, Decimal, UUID, Path),
)
_ORIGINS = (
    *(list, dict, tuple, set, frozenset, Union, types.UnionType, Literal),
    *(collections.abc.Sequence, collections.abc.Mapping, collections.abc.Iterable),
)
_CONSTANTS: tuple[Any, ...] = (Any, Ellipsis, PydanticUndefined)
_NAMES: dict[Any, str] = {item: repr(item) for item in (*_CLASSES, *_ORIGINS, *_CONSTANTS)}
_BY_REPR = (type(None), bool, int, float, str, bytes, date, timedelta, Decimal, UUID)
"""Types whose `repr` identifies a value exactly."""
_CONSTRAINTS = (
    *(annotated_types.Gt, annotated_types.Ge, annotated_types.Lt, annotated_types.Le),
    *(annotated_types.MultipleOf, annotated_types.MinLen, annotated_types.MaxLen),
)
_IRRELEVANT = frozenset({"_complete", "_original_annotation", "_original_assignment"})
"""Parts of a `FieldInfo` that describe the model around it; a parameter has none."""


class NotCacheable(Exception):
    """The value has no exact fingerprint."""


def make_fingerprint(value: Any) -> bytes:
    """Return bytes that identify a type hint, a default, or a container of these.

    Raises:
        NotCacheable: It holds something that is not in this module's tables.
    """
    encoded = _encode(value)
    # The length prefix keeps different lists of parts from encoding to the same bytes.
    return b"%d:" % len(encoded) + encoded


def _encode(value: Any) -> bytes:
    kind = type(value)
    if kind in _BY_REPR:
        return _encode_text(f"{kind.__name__} {value!r}")
    encode = _ENCODERS.get(kind)
    if encode is not None:
        return encode(value)
    return _encode_hint(value)


def _encode_sequence(value: Any) -> bytes:
    return _encode_parts(type(value).__name__, value)


def _encode_dict(value: dict[Any, Any]) -> bytes:
    return _encode_parts("dict", [part for item in value.items() for part in item])


def _encode_set(value: Any) -> bytes:
    if value:  # its order is random, and visible in a published default
        raise NotCacheable
    return _encode_text(type(value).__name__)


def _encode_moment(value: datetime | clock_time) -> bytes:
    if value.tzinfo is not None:
        raise NotCacheable
    return _encode_text(repr(value))


def _encode_constraint(value: Any) -> bytes:
    return _encode_parts(
        type(value).__name__, [getattr(value, item.name) for item in fields(value)]
    )


def _encode_general(value: Any) -> bytes:
    return _encode_parts("general", sorted(vars(value).items()))


def _encode_hint(value: Any) -> bytes:
    origin = get_origin(value)
    if origin is not None:
        return _encode_generic(value, origin)
    try:
        name = _NAMES.get(value)
    except Exception:  # noqa: BLE001 - hashing runs code of the author's
        name = None
    # By identity: the author's `__eq__` may claim to equal anything.
    if name is None or not any(value is item for item in _NAMES):
        raise NotCacheable
    return _encode_text(f"known {name}")


def _encode_generic(value: Any, origin: Any) -> bytes:
    if origin is Annotated:
        return _encode_parts("Annotated", [value.__origin__, *value.__metadata__])
    if not any(origin is item for item in _ORIGINS):
        raise NotCacheable
    # A subclass of an alias may hold more than origin and arguments.
    if type(value).__module__ not in ("typing", "types"):
        raise NotCacheable
    # Including its type: `typing.Tuple` and `tuple[()]` have the same origin and arguments.
    return _encode_parts(f"{_NAMES[origin]} {type(value).__qualname__}", get_args(value))


def _encode_field(field: FieldInfo) -> bytes:
    items = [(name, getattr(field, name, None)) for name in FieldInfo.__slots__]
    # None is meaningful only in `default`; leaving out the others halves the time.
    parts = [
        item
        for item in items
        if item[0] not in _IRRELEVANT and (item[1] is not None or item[0] == "default")
    ]
    return _encode_parts("Field", parts)


def _encode_parts(name: str, parts: collections.abc.Iterable[Any]) -> bytes:
    return _encode_text(name) + b"(" + b"".join(make_fingerprint(part) for part in parts) + b")"


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    list: _encode_sequence,
    tuple: _encode_sequence,
    dict: _encode_dict,
    set: _encode_set,
    frozenset: _encode_set,
    datetime: _encode_moment,
    clock_time: _encode_moment,
    FieldInfo: _encode_field,
    # The class in which a `Field` keeps a pattern and other constraints has no public name.
    type(Field(pattern="").metadata[0]): _encode_general,
    **dict.fromkeys(_CONSTRAINTS, _encode_constraint),
}
"""Encoders by exact type: a subclass may override anything."""
