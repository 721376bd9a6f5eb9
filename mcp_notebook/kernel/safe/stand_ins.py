"""Replaces objects that are read as data by their fields or by an equivalent text.

Runs in the user's kernel, on the thread of the call. A record (a dataclass, a named tuple, an attrs
class, a msgspec struct) becomes its fields. `_READERS` lists library objects whose repr is only
a name; add a line for another class. No library is imported: if there is an object of one, it is
loaded. The caller limits the time of a reader.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from typing import Any, TypeAlias

from mcp_notebook.kernel.safe.libraries import find_libraries, get_mro, is_instance
from mcp_notebook.kernel.safe.tabular_data import find_free_name, name_fields
from mcp_notebook.kernel.safe.text import find_member, is_written

MAX_ALIGNMENTS = 10
"""Maximum alignments of a pair of sequences; there may be millions."""
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
    if not isinstance(value, tuple):
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
    if names is not None and any(name.startswith("_") for name in names):
        has_text = is_written(kind, "__repr__") or is_written(kind, "__str__")
        return None if has_text else names
    return names


def _list_declared_names(value: Any, kind: type) -> list[str] | None:
    if isinstance(value, tuple):
        names = find_member(kind, "_fields")
        return None if names is None else list(names)
    if find_member(kind, "__dataclass_fields__") is not None:
        return [item.name for item in fields(value)]
    attributes = find_member(kind, "__attrs_attrs__")
    if attributes is not None:
        return [item.name for item in attributes]
    return list(value.__struct_fields__) if is_instance(value, "msgspec.Struct") else None


# -- objects of libraries --------------------------------------------------------------------------


def find_reader(value: Any) -> Reader | None:
    """Return the function that makes an object's stand-in; None if it has none."""
    kind = type(value)
    if "sqlalchemy" in sys.modules and find_member(kind, "__mapper__") is not None:
        return _read_mapped
    for library in find_libraries(value):
        for path, reader in _BY_LIBRARY.get(library, ()):
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
    text = str.__str__(str(value))
    if not (text.startswith("<") and text.endswith(">")):
        return text
    reader = find_reader(value)
    return text if reader is None else str(reader(value))


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
    named: dict[str, Any] = {}
    for name, value in zip(row._fields, row, strict=True):
        named[find_free_name(name, named)] = value
    return named


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


def _read_tree(value: Any) -> str:
    return str(value.format("newick")).strip()


def _read_molecule(value: Any) -> str:
    return str(sys.modules["rdkit.Chem"].MolToSmiles(value))


def _read_reaction(value: Any) -> str:
    return str(sys.modules["rdkit.Chem.rdChemReactions"].ReactionToSmarts(value))


def _read_alignments(value: Any) -> str:
    first = list(islice(value, MAX_ALIGNMENTS))
    more = next(islice(value, MAX_ALIGNMENTS, None), None) is not None
    title = f"Alignments with the score {value.score:g}"
    title += f", the first {MAX_ALIGNMENTS} of more:" if more else ":"
    return "\n".join([title, *map(str, first)])


_READERS: Mapping[str, Reader] = {
    "sqlite3.Row": name_fields,
    "sqlalchemy.engine.Row": _name_row,
    "sqlalchemy.engine.RowMapping": dict,
    "shapely.geometry.base.BaseGeometry": str,
    "pyarrow.Scalar": lambda value: value.as_py(),
    "rdkit.Chem.rdchem.Mol": _read_molecule,
    "rdkit.Chem.rdChemReactions.ChemicalReaction": _read_reaction,
    "rdkit.DataStructs.cDataStructs.ExplicitBitVect": lambda value: {
        "bits": value.GetNumBits(),
        "on": list(value.GetOnBits()),
    },
    "Bio.Seq.Seq": str,
    "Bio.Align.PairwiseAlignments": _read_alignments,
    "Bio.Phylo.BaseTree.Tree": _read_tree,
    "statsmodels.iolib.summary.Summary": str,
    "statsmodels.iolib.summary2.Summary": str,
}
"""Readers by class, which return a dict of fields or an equivalent text."""
_DISPLAYS: Mapping[str, Reader] = {"IPython.core.display.DisplayObject": _read_display}
_ROW_READERS: frozenset[Reader | None] = frozenset({name_fields, _name_row, dict, _read_mapped})


def _group_by_library(readers: Mapping[str, Reader]) -> dict[str, list[tuple[str, Reader]]]:
    groups: dict[str, list[tuple[str, Reader]]] = {}
    for path, reader in readers.items():
        groups.setdefault(path.partition(".")[0], []).append((path, reader))
    return groups


_BY_LIBRARY = _group_by_library({**_READERS, **_DISPLAYS})
