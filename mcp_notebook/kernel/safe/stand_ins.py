"""Replaces objects that are read as data by their fields or by an equivalent text.

Runs in the user's kernel, on the thread of the call. A record (a dataclass, a named tuple, an attrs
class, a msgspec struct, ``os.stat_result``) becomes its fields, without those that its class keeps
out of its repr; so does an object of the notebook's own class whose repr would be an address.
`_READERS` lists library objects whose repr is only
a name; add a line for another class. No library is imported: if there is an object of one, it is
loaded. The caller limits the time of a reader.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from enum import Enum, Flag
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, TypeAlias

from pydantic import BaseModel

from mcp_notebook.kernel.safe.libraries import (
    find_libraries,
    get_members,
    get_module_name,
    get_mro,
    is_instance,
)
from mcp_notebook.kernel.safe.sequences import order_items
from mcp_notebook.kernel.safe.tabular_data import (
    list_elements,
    name_fields,
    name_uniquely,
    shorten_floats,
)
from mcp_notebook.kernel.safe.text import drop_addresses, find_member, is_written

_SHOWING = ("__repr__", "__str__", "_repr_pretty_")
"""Methods by which a class says how its objects are shown."""
_SECRET = re.compile(
    "passw|pwd|secret|token|(api|access|private)_?key|credential|auth(?!or)|dsn|cookie|bearer",
    re.IGNORECASE,
)
"""Names of attributes that nobody declared to be shown."""
Reader: TypeAlias = Callable[[Any], Any]

# -- records ---------------------------------------------------------------------------------------


def list_fields(value: Any) -> list[tuple[str, Any]] | None:
    """Return the fields of a record by name; None for other values.

    An object with private fields and a hand-written ``__repr__`` or ``__str__`` is not a record:
    its text describes it.
    """
    names = _list_names(value)
    if names is None:
        return None
    if not isinstance(value, tuple) or _is_struct_sequence(type(value)):
        return [(name, getattr(value, name)) for name in names]
    # scipy's results have fields beyond their tuple's items: `TtestResult.df`.
    attributes = getattr(value, "__dict__", {})
    extra = {name: item for name, item in attributes.items() if not name.startswith("_")}
    return [*zip(names, value, strict=False), *extra.items()]


def is_record(value: Any) -> bool:
    """Return whether `list_fields` returns a value's fields, without reading them."""
    return _list_names(value) is not None


def _list_names(value: Any) -> list[str] | None:
    if isinstance(value, type):
        return None
    kind = type(value)
    names = _list_declared_names(value, kind)
    if names is None:
        return _list_public_names(value, kind)
    if any(name.startswith("_") for name in names):
        has_text = is_written(kind, "__repr__") or is_written(kind, "__str__")
        return None if has_text else names
    return names


def _list_declared_names(value: Any, kind: type) -> list[str] | None:
    if isinstance(value, tuple):
        if _is_struct_sequence(kind):
            members = get_members(kind).items()
            return [name for name, member in members if type(member) is MemberDescriptorType]
        names = find_member(kind, "_fields")
        return None if names is None else list(names)
    if kind is SimpleNamespace:
        return [*vars(value)]
    if find_member(kind, "__dataclass_fields__") is not None:
        return [item.name for item in fields(value) if item.repr]
    attributes = find_member(kind, "__attrs_attrs__")
    if attributes is not None:
        return [item.name for item in attributes if item.repr]
    return list(value.__struct_fields__) if is_instance(value, "msgspec.Struct") else None


def _is_struct_sequence(kind: type) -> bool:
    """Return whether a class is C's kind of named tuple: ``os.stat_result``, ``time.struct_time``.

    Some of its names have no place among its items.
    """
    return find_member(kind, "n_sequence_fields") is not None


def _list_public_names(value: Any, kind: type) -> list[str] | None:
    """Return the public attributes of an object of a class that the notebook defined.

    None if its class says how it is shown, or if it has none. The objects of libraries may hold
    what their user has never seen, such as a session's headers.
    """
    if get_module_name(kind) != "__main__" or any(
        find_member(kind, name) is not find_member(object, name) for name in _SHOWING
    ):
        return None
    declared = [
        name
        for parent in reversed(get_mro(kind))
        for name, member in get_members(parent).items()
        if (
            hasattr(value, name)
            if type(member) is MemberDescriptorType
            else get_module_name(parent) == "__main__" and _is_constant(member)
        )
    ]
    names = [
        name
        for name in dict.fromkeys((*declared, *getattr(value, "__dict__", {})))
        if not name.startswith("_") and not _SECRET.search(name)
    ]
    return names or None


def _is_constant(member: Any) -> bool:
    """Return whether a member of a class is data: no function, property or class."""
    return find_member(type(member), "__get__") is None and not issubclass(type(member), type)


def find_hidden_names(kind: type) -> frozenset[str]:
    """Return the fields that a model or dataclass keeps out of its repr."""
    if issubclass(kind, BaseModel):
        return frozenset(name for name, item in kind.model_fields.items() if not item.repr)
    declared: Any = kind
    return frozenset(item.name for item in fields(declared) if not item.repr)


def dump_model(value: BaseModel, *, by_alias: bool = False) -> dict[str, Any]:
    """Return the fields of a pydantic model, without those with ``repr=False``."""
    return value.model_dump(by_alias=by_alias, exclude=_list_hidden(value))


def _list_hidden(value: Any) -> Any:
    """Return the fields with ``repr=False`` in a value as ``model_dump`` takes them; or None."""
    parts: dict[Any, Any]
    if isinstance(value, BaseModel):
        parts = {
            name: _list_hidden(getattr(value, name, None)) if field.repr else True
            for name, field in type(value).model_fields.items()
        }
    elif type(value) in (list, tuple):
        parts = {place: _list_hidden(item) for place, item in enumerate(value)}
    elif type(value) is dict:
        parts = {key: _list_hidden(item) for key, item in value.items()}
    else:
        return None
    return {key: part for key, part in parts.items() if part} or None


# -- enumerations and scalars ----------------------------------------------------------------------


def is_scalar_class(kind: type) -> bool:
    """Return whether `read_scalar` is for the values of a class."""
    return issubclass(kind, Enum) or any(
        get_module_name(parent) == "numpy" and parent.__name__ == "generic"
        for parent in get_mro(kind)
    )


def read_scalar(value: Any) -> Any:
    """Return a scalar of numpy as Python's, and an enumeration's member as in JSON."""
    if isinstance(value, Enum):
        return read_member(value)
    if value.dtype.kind in "mM":
        return list_elements(value.reshape(1))[0]
    return shorten_floats(value.item(), value.dtype)


def read_member(member: Enum) -> Any:
    """Return the name of an enumeration's member if its value is only a number, else its value."""
    return member.name if has_names_only(type(member)) and member.name else member.value


def has_names_only(kind: type[Enum]) -> bool:
    """Return whether the values of an enumeration say nothing: they only count, as `auto` does."""
    values = [member.value for member in kind]
    if issubclass(kind, Flag):
        return values == [1 << place for place in range(len(values))]
    counts = all(type(value) is int for value in values)
    if counts and values in ([*range(1, len(values) + 1)], [*range(len(values))]):
        return True
    return all(type(value) is object for value in values)


# -- objects of libraries --------------------------------------------------------------------------


def find_reader(value: Any) -> Reader | None:
    """Return the function that makes an object's stand-in; None if it has none."""
    kind = type(value)
    if "sqlalchemy" in sys.modules and find_member(kind, "__mapper__") is not None:
        return _read_mapped
    for library in find_libraries(value):
        for path, reader in _READERS.get(library, {}).items():
            if is_instance(value, path):
                return reader
    return None


def has_stand_in(value: Any) -> bool:
    """Return whether to prefer an object's stand-in to its own display."""
    return find_reader(value) not in (None, _read_display)


def name_parts(value: Any) -> dict[str, Any] | None:
    """Return a record, or a row of a database, as a dict; None for any other value."""
    if is_instance(value, "numpy.void") and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    reader = find_reader(value)
    if reader is None:
        named = list_fields(value)
        return None if named is None else dict(named)
    parts = reader(value)
    return parts if isinstance(parts, dict) else None


def format_object(value: Any) -> str:
    """Return ``str`` of an object, or its stand-in if that is only a name."""
    if type(value) in (set, frozenset):
        return f"{{{', '.join(map(repr, order_items(value)))}}}" if value else str(value)
    if isinstance(value, Enum):
        return str(read_member(value))
    text = str.__str__(str(value))
    if not (text.startswith("<") and text.endswith(">")):
        return text
    reader = find_reader(value)
    if reader is not None:
        return str(reader(value))
    named = _list_public_names(value, type(value))
    if named is None:
        return drop_addresses(text)
    parts = ", ".join(f"{name}={drop_addresses(repr(getattr(value, name)))}" for name in named)
    return f"{type(value).__name__}({parts})"


def prints_itself(array: Any) -> bool:
    """Return whether a subclass of numpy's array has its own text, such as one with a unit."""
    for parent in get_mro(type(array)):
        if parent.__module__.partition(".")[0] == "numpy":
            return False
        if not {"__repr__", "__str__"}.isdisjoint(vars(parent)):
            return True
    return False


def holds_rows(value: Any) -> bool:
    """Return whether a value is a list of only database rows."""
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and all(find_reader(row) in _ROW_READERS for row in value)


def read_rows(rows: list[Any]) -> list[Any]:
    """Return the rows of a list, for which `holds_rows` is true, as dicts."""
    return [reader(row) for row in rows if (reader := find_reader(row)) is not None]


def _name_row(row: Any) -> dict[str, Any]:
    """Return a SQLAlchemy row as a dict; repeated columns get a number."""
    return name_uniquely(zip(row._fields, row, strict=True))


def _read_mapped(value: Any) -> Any:
    """Return the columns of a SQLAlchemy-mapped object, without loading its relationships.

    Columns that a commit has expired are loaded again, as for the notebook's own code.
    """
    state = value._sa_instance_state  # noqa: SLF001 - as `sqlalchemy.inspect` finds it
    loaded, expired = state.dict, state.expired_attributes if state.session is not None else ()
    columns = {}
    for name in (column.key for column in state.mapper.column_attrs):
        if name in loaded or name in expired:
            with suppress(Exception):  # an asynchronous session loads nothing here
                columns[name] = getattr(value, name)
    if columns:
        return columns
    return f"<{type(value).__name__} without loaded columns: its session is closed>"


def _read_display(value: Any) -> Any:
    """Return the source of an IPython display object, for places that show only text."""
    source = next((item for item in (value.data, value.url, value.filename) if item), "")
    return source if isinstance(source, (str, bytes)) else str(source)


_READERS: Mapping[str, Mapping[str, Reader]] = {
    "sqlite3": {"sqlite3.Row": name_fields},
    "sqlalchemy": {"sqlalchemy.engine.Row": _name_row, "sqlalchemy.engine.RowMapping": dict},
    "shapely": {"shapely.geometry.base.BaseGeometry": str},
    "pyarrow": {"pyarrow.Scalar": lambda value: value.as_py()},
    "IPython": {"IPython.core.display.DisplayObject": _read_display},
}
"""Readers by library and class, which return a dict of fields or an equivalent text."""
_ROW_READERS: frozenset[Reader | None] = frozenset({name_fields, _name_row, dict, _read_mapped})
