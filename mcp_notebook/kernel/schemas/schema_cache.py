"""Schemas on disk, so that a notebook that starts again need not build them again.

Runs in the user's kernel, at definition, on any thread. A schema is found by the fingerprint of
what it is made of; what has no exact fingerprint is not cached: a schema is never wrong, at worst
it is built.

The files lie in a folder below `Settings.home`, which notebook and headless kernel agree on: a
desktop client's child process has no XDG variables, and would look for the user's cache elsewhere.
Each file is one schema: named for its key, the first line a digest of the rest, written aside and
renamed. So any number of processes may read, write and clear at once, and what is damaged or
somebody else's is built anew. The folder is bounded in files and in age.

A disk that cannot be read or written costs time, and nothing else.
"""

import collections.abc
import contextlib
import enum
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
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mcp_notebook._version import __version__
from mcp_notebook.settings.private_files import read_private, write_private

MAX_FILES = 5_000
"""Schemas that are kept; the ones not used for longest go."""
MAX_AGE = 90 * 86_400.0
"""Seconds after its last use that a schema is kept."""
_TOUCH = 86_400.0
"""Seconds between two notes of a file's use: one note a day is enough for pruning."""
_SUFFIX = ".json"
_MAX_SIZE = 2**24
"""Bytes of a file that is read."""


class SchemaCache:
    """The schemas of one user; for any thread.

    Args:
        folder: Where the files are; made at the first `put`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sources: bytes | None = None
        self._pruned = False

    def key(self, *parts: Any) -> str | None:
        """Return the name of what is made of these parts; None if they cannot be told exactly.

        Args:
            parts: All that the schema depends on.
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
        """Return what was put under this key, if it is there and whole."""
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
        """Keep a JSON object under this key."""
        # Not sorted: the order of a schema's properties is the signature's.
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            body = json.dumps(value, separators=(",", ":"), allow_nan=False)
            write_private(self._path(key), f"{_compute_digest(key, body)}\n{body}")
            if not self._pruned:
                self._pruned = True
                _prune(self._folder)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"


def _compute_digest(key: str, body: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode()).hexdigest()


def _hash_sources() -> bytes:
    """Return what tells apart all versions of the code that makes schemas."""
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
    # All modules of this room and the rooms in it: what a schema is may be decided in any of them.
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        with contextlib.suppress(OSError):  # in an archive, say: then the version alone counts
            code.update(path.read_bytes())
    return code.digest()


def _prune(folder: Path) -> None:
    used = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):  # another process may prune as well
            used.append((path.stat().st_mtime, path))
    used.sort(reverse=True)
    oldest = time.time() - MAX_AGE
    for number, (when, path) in enumerate(used):
        if number >= MAX_FILES or when < oldest:
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
"""Types whose values their `repr` tells exactly."""
_CONSTRAINTS = (
    *(annotated_types.Gt, annotated_types.Ge, annotated_types.Lt, annotated_types.Le),
    *(annotated_types.MultipleOf, annotated_types.MinLen, annotated_types.MaxLen),
)
_ENUM_BASES = (enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum, str, int, float, object)
_ENUM_CODE = ("_missing_", "value", "name", "_value_", "__eq__", "__hash__")
"""Attributes by which an enumeration would take part in what its values are."""
_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__get_validators__")
_MODEL_META = type(BaseModel)
_MODEL_CODE = (*_HOOKS, "model_json_schema", "__new__", "__eq__", "__hash__", "model_validate")
_IRRELEVANT = frozenset({"_complete", "_original_annotation", "_original_assignment"})
"""Parts of a `FieldInfo` that belong to the model it is in, and here to none."""


class NotCacheable(Exception):
    """Something that this module cannot tell exactly."""


def make_fingerprint(value: Any) -> bytes:
    """Return what tells a type hint, a default, or a container of them from all others.

    Raises:
        Unknown: It holds something that is not in this module's tables.
    """
    encoded = _encode(value)
    # Each part carries its length, so that no two lists of parts run together to the same bytes.
    return b"%d:" % len(encoded) + encoded


def _encode(value: Any) -> bytes:
    kind = type(value)
    if kind in _BY_REPR:
        return _encode_text(f"{kind.__name__} {value!r}")
    encode = _ENCODERS.get(kind)
    if encode is not None:
        return encode(value)
    if type(kind) is enum.EnumMeta:
        return _encode_parts("member", [kind, value.name])
    return _encode_hint(value)


def _encode_sequence(value: Any) -> bytes:
    return _encode_parts(type(value).__name__, value)


def _encode_dict(value: dict[Any, Any]) -> bytes:
    return _encode_parts("dict", [part for item in value.items() for part in item])


def _encode_set(value: Any) -> bytes:
    if value:  # their order is a matter of chance, and it is seen in a published default
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
    except Exception:  # noqa: BLE001 - a value of the author's may refuse even to be hashed
        name = None
    # A value may say that it equals anything.
    if name is None or not any(value is item for item in _NAMES):
        raise NotCacheable
    return _encode_text(f"known {name}")


def _encode_generic(value: Any, origin: Any) -> bytes:
    if origin is Annotated:
        return _encode_parts("Annotated", [value.__origin__, *value.__metadata__])
    if not any(origin is item for item in _ORIGINS):
        raise NotCacheable
    # A subclass of an alias may carry more than origin and arguments.
    if type(value).__module__ not in ("typing", "types"):
        raise NotCacheable
    # With its type: `typing.Tuple` and `tuple[()]` have the same origin and arguments.
    return _encode_parts(f"{_NAMES[origin]} {type(value).__qualname__}", get_args(value))


def _encode_field(field: FieldInfo) -> bytes:
    items = [(name, getattr(field, name, None)) for name in FieldInfo.__slots__]
    # None says nothing but in `default`: half of the time goes by leaving it out.
    parts = [
        item
        for item in items
        if item[0] not in _IRRELEVANT and (item[1] is not None or item[0] == "default")
    ]
    return _encode_parts("Field", parts)


def _encode_enumeration(kind: Any) -> bytes:
    members = vars(kind)
    plain = (
        all(base is kind or base in _ENUM_BASES for base in kind.__mro__)
        and not any(name in members for name in _ENUM_CODE)
        and not any(hasattr(kind, hook) for hook in _HOOKS)
    )
    if not plain:
        raise NotCacheable
    members = [(name, vars(member)["_value_"]) for name, member in kind.__members__.items()]
    bases = [base.__qualname__ for base in kind.__mro__]
    return _encode_parts("enum", [kind.__module__, kind.__qualname__, kind.__doc__, bases, members])


def _encode_model(kind: Any) -> bytes:
    """Tell a model that is nothing but its fields."""
    bases = kind.__mro__[: kind.__mro__.index(BaseModel)]
    code = kind.__pydantic_decorators__  # validators, serializers, computed fields
    plain = (
        kind.__pydantic_complete__
        and not kind.__pydantic_custom_init__
        and not kind.__pydantic_post_init__
        and not kind.__pydantic_root_model__
        and not any(kind.__pydantic_generic_metadata__.values())
        and not any(getattr(code, item.name) for item in fields(code))
        and all(type(base) is _MODEL_META for base in bases)
        and not any(name in vars(base) for base in bases for name in _MODEL_CODE)
    )
    if not plain:
        raise NotCacheable
    # `dict`: the configuration may be a dict's subclass, and is one of plain values or unknown.
    parts = [kind.__module__, kind.__qualname__, kind.__doc__, dict(kind.model_config)]
    described = [(name, field, field.annotation) for name, field in kind.model_fields.items()]
    return _encode_parts("model", [*parts, described])


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
    # What a `Field` holds of a pattern and other constraints; its class has no public name.
    type(Field(pattern="").metadata[0]): _encode_general,
    **dict.fromkeys(_CONSTRAINTS, _encode_constraint),
    enum.EnumMeta: _encode_enumeration,
    _MODEL_META: _encode_model,
}
"""By the exact type: a subclass may say or do anything."""
