"""What the user registered with IPython's display formatters for an object.

Runs in the user's kernel, on the thread of the call. IPython asks an object's own
``_ipython_display_`` before a formatter that the user registered for one MIME type. For what tools
return, the user's formatters come first.
"""

from collections.abc import Callable, Mapping
from typing import Any


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
    if any(_has_formatter(formatter, value) for formatter in of_all_types):
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
    """Tell whether a formatter is registered that says more of an object than plain text.

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
    if formatter is None:
        return False
    try:
        formatter.lookup(value)
    except KeyError:
        return False
    return True
