"""Which return annotations describe data that a program can use, and what they mean to pydantic.

Runs in the user's kernel, at definition. Pure functions. A tool has structured results though its
author did not ask for them if its annotation is one of these:

- models, dataclasses, TypedDict, named tuples; lists, tuples and sets of something; dicts; numbers,
  bool, dates, Decimal, UUID; Literal and Enum; unions of these;
- not ``str`` (a model reads the text already), ``bytes``, None, Any, a bare ``list`` (of pictures,
  maybe: many clients show a model the data in place of the content), iterators, what is displayed
  (figures, pictures, tables, files, content blocks, `content.Result`), and what pydantic does not
  know.
"""

import collections.abc
import inspect
import types
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin

import typing_extensions

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.kernel.schemas.annotations import is_alias
from mcp_notebook.kernel.schemas.parameters.callables import NO_ANNOTATION

_DISPLAYED = (Result, Text, Image, Audio, Resource, ResourceLink)
_SAYS_NOTHING = (NO_ANNOTATION, None, type(None), Any, object, NoReturn, typing_extensions.Never)
_COLLECTIONS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Collection)
_LAZY = frozenset(
    {
        collections.abc.Iterator,
        collections.abc.Iterable,
        collections.abc.Generator,
        collections.abc.AsyncIterator,
        collections.abc.AsyncGenerator,
    }
)
_AWAITED = frozenset({collections.abc.Awaitable, collections.abc.Coroutine})
_LIBRARY_TYPES: dict[tuple[str, str], Any] = {
    ("pandas", "DataFrame"): list[dict[str, Any]],
    ("polars", "DataFrame"): list[dict[str, Any]],
    ("pyarrow", "Table"): list[dict[str, Any]],
    ("pyarrow", "RecordBatch"): list[dict[str, Any]],
    ("duckdb", "DuckDBPyRelation"): list[dict[str, Any]],
    ("_duckdb", "DuckDBPyRelation"): list[dict[str, Any]],
    ("polars", "Series"): list,
    ("pandas", "Series"): dict[str, Any],
    ("numpy", "ndarray"): list,
}
"""What types of the data libraries are as JSON."""


def describes_data(annotation: Any) -> bool:
    """Tell whether a return annotation says something that a program could use."""
    annotation = _unwrap(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(map(describes_data, arguments)) and not _contains_displayed(annotation)
    if any(annotation is silent for silent in _SAYS_NOTHING) or isinstance(annotation, TypeVar):
        return False
    if (origin or annotation) in _COLLECTIONS and all(
        argument in (Any, object, ...) for argument in arguments
    ):
        return False
    if inspect.isclass(annotation) and issubclass(annotation, Path):
        return False
    if inspect.isclass(annotation) and issubclass(annotation, (str, bytes, bytearray)):
        return issubclass(annotation, Enum)
    return not (annotation in _LAZY or origin in _LAZY or _contains_displayed(annotation))


def translate_annotation(annotation: Any) -> Any:
    """Return an annotation as pydantic knows it: a library's table is a list of dicts.

    Raises:
        TypeError: It is of a result that is made by hand.
    """
    bare = _unwrap(annotation)
    kind = get_origin(bare) or bare
    if _contains_displayed(bare):
        raise TypeError("it is made by hand and says nothing of the data")
    if kind in _LAZY:
        return list[get_args(bare)[0]] if get_args(bare) else list  # type: ignore[misc]
    module = str(getattr(kind, "__module__", "")).partition(".")[0]
    return _LIBRARY_TYPES.get((module, getattr(kind, "__name__", "")), annotation)


def _contains_displayed(annotation: Any) -> bool:
    if inspect.isclass(annotation) and issubclass(annotation, _DISPLAYED):
        return True
    if get_origin(annotation) is not None and str(get_origin(annotation)) == "typing.Literal":
        return False
    return any(map(_contains_displayed, get_args(annotation)))


def _unwrap(annotation: Any) -> Any:
    """Return what an annotation is about, without a name, an extra or an ``await`` around it."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in _AWAITED and get_args(annotation):
            annotation = get_args(annotation)[-1]
        elif is_alias(annotation):
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation
