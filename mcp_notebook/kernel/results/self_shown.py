"""How objects show themselves: their own display methods, and reprs that nobody wrote.

Runs in the user's kernel, on the thread of the call. An object whose class defines `_repr_html_` or
a method like it is shown by that, also where it is a mapping, a dataclass or a list: its author
knows best what there is to see.
"""

from collections.abc import Mapping
from typing import Any

from mcp_notebook.kernel.safe.text import is_written

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
    if len(data) > 1 and "text/plain" in data and not is_written(type(value), "__repr__"):
        return {key: item for key, item in data.items() if key != "text/plain"}
    return data
