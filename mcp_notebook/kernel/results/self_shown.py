"""How objects show themselves: their own display methods, and reprs that nobody wrote.

Runs in the user's kernel, on the thread of the call. An object whose class defines `_repr_html_` or
a method like it is shown by that, also where it is a mapping, a dataclass or a list: its author
knows best what there is to see. A repr that a dataclass or `object` generates lists internals, and
so says less than anything that was written.
"""

import collections
from collections.abc import Mapping
from typing import Any

RICH_METHODS = (
    *("_repr_mimebundle_", "_repr_png_", "_repr_jpeg_", "_repr_svg_"),
    *("_repr_markdown_", "_repr_html_", "_repr_latex_", "_repr_json_"),
)
"""The methods by which IPython asks an object to show itself."""
_DISPLAYS_ITSELF = "_ipython_display_"
_OF_TABLES = (
    *(_DISPLAYS_ITSELF, "_repr_mimebundle_"),
    *("_repr_png_", "_repr_jpeg_", "_repr_markdown_"),
)
_BUILT_IN = frozenset({str, int, float, bool, type(None), list, tuple, dict, set, frozenset, bytes})
_GENERAL = frozenset({"builtins", "collections", "pydantic.main", "pydantic._internal._repr"})
"""Modules whose classes have reprs that say nothing particular of the classes derived from them."""
_GENERATED = ("<string>", "<attrs generated", collections.__file__)
"""Beginnings of the file names of reprs that dataclasses, attrs and named tuples generate."""


def shows_itself(value: Any) -> bool:
    """Tell whether the class of an object says how the object is displayed."""
    kind = type(value)
    return kind not in _BUILT_IN and any(
        callable(getattr(kind, name, None)) for name in (*RICH_METHODS, _DISPLAYS_ITSELF)
    )


def displays_itself(value: Any) -> bool:
    """Tell whether an object displays itself when it is formatted, so that nothing is returned."""
    return callable(getattr(type(value), _DISPLAYS_ITSELF, None))


def may_show_picture_or_markdown(value: Any) -> bool:
    """Tell whether a table may have a method by which it shows itself other than as a table.

    IPython would ask the object for each. What the tables of pandas look through then, their
    columns, are no methods, so their classes and own attributes say it at a small part of the cost.
    """
    kind = type(value)
    if kind.__module__.partition(".")[0] != "pandas":
        return True
    return any(hasattr(kind, name) or name in vars(value) for name in _OF_TABLES)


def leave_out_generated_repr(value: Any, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the MIME bundle of an object without its plain text if nobody wrote that.

    Args:
        value: The object.
        data: What IPython's formatters return for it.
    """
    if len(data) > 1 and "text/plain" in data and _has_generated_repr(type(value)):
        return {key: item for key, item in data.items() if key != "text/plain"}
    return data


def _has_generated_repr(kind: type) -> bool:
    for parent in type.__dict__["__mro__"].__get__(kind):
        members = type.__dict__["__dict__"].__get__(parent)
        if "_repr_pretty_" in members:  # which IPython takes in place of the repr
            return False
        if "__repr__" in members:
            return _is_generated(parent, members["__repr__"])
    return True


def _is_generated(owner: type, method: Any) -> bool:
    if owner.__module__ in _GENERAL:
        return True
    function = getattr(method, "__wrapped__", method)  # dataclasses guard theirs against recursion
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return str(file).startswith(_GENERATED)
