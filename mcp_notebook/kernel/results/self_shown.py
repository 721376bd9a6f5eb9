"""How objects show themselves: display methods, registered formatters, generated reprs.

Runs in the user's kernel, on the thread of the call. An object whose class defines `_repr_html_` or
a similar method is shown by it, even if it is a mapping, a dataclass or a list: its author knows
best how to show it. Formatters that the user registered with IPython come before our own rules.
IPython itself would ask `_ipython_display_` first.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_notebook.kernel.safe.text import is_written

RICH_METHODS = (
    *("_repr_mimebundle_", "_repr_png_", "_repr_jpeg_", "_repr_svg_"),
    *("_repr_markdown_", "_repr_html_", "_repr_latex_", "_repr_json_"),
)
"""The methods by which IPython asks an object to show itself."""
_DISPLAYS_ITSELF = "_ipython_display_"
_BUILT_IN = frozenset({str, int, float, bool, type(None), list, tuple, dict, set, frozenset, bytes})


def shows_itself(value: Any) -> bool:
    """Return whether the class of an object defines how it is displayed."""
    kind = type(value)
    return kind not in _BUILT_IN and any(
        callable(getattr(kind, name, None)) for name in (*RICH_METHODS, _DISPLAYS_ITSELF)
    )


def displays_itself(value: Any) -> bool:
    """Return whether an object displays itself when formatted, and returns nothing."""
    return callable(getattr(type(value), _DISPLAYS_ITSELF, None))


def leave_out_generated_repr(value: Any, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the MIME bundle of an object, without its plain text if that is generated.

    Args:
        value: The object.
        data: What IPython's formatters return for it.
    """
    if len(data) > 1 and "text/plain" in data and not is_written(type(value), "__repr__"):
        return {key: item for key, item in data.items() if key != "text/plain"}
    return data


def format_registered(format_: Callable[..., Any], value: Any) -> Mapping[str, Any] | None:
    """Return the representations of an object by formatters that are registered for its type.

    Args:
        format_: IPython's ``shell.display_formatter.format``.
        value: The object.

    Returns:
        MIME types and values; None if nothing is registered.
    """
    owner = getattr(format_, "__self__", None)
    of_all_types = (
        getattr(owner, "ipython_display_formatter", None),
        getattr(owner, "mimebundle_formatter", None),
    )
    if any(
        formatter is not None and _has_formatter(formatter, value) for formatter in of_all_types
    ):
        data: Mapping[str, Any] = format_(value)[0]
        return data
    formatters: Mapping[str, Any] = getattr(owner, "formatters", {})
    bundle: dict[str, Any] = {}
    for mime_type, formatter in formatters.items():
        if _has_formatter(formatter, value):
            output = formatter(value)
            # A formatter returns data, or data and metadata.
            data = output[0] if isinstance(output, tuple) else output
            if data is not None:
                bundle[mime_type] = data
    return bundle or None


def has_registered_format(format_: Callable[..., Any], value: Any) -> bool:
    """Return whether a formatter is registered that says more of an object than plain text.

    Args:
        format_: IPython's ``shell.display_formatter.format``.
        value: The object.
    """
    if type(value).__module__ == "builtins":
        return False
    owner = getattr(format_, "__self__", None)
    formatters: Mapping[str, Any] = getattr(owner, "formatters", {})
    return any(
        mime_type != "text/plain" and _has_formatter(formatter, value)
        for mime_type, formatter in formatters.items()
    )


def _has_formatter(formatter: Any, value: Any) -> bool:
    try:
        formatter.lookup(value)
    except (KeyError, TypeError, AttributeError):  # a class that has no hash, or a proxy
        return False
    return True
