"""What the user registered with IPython's display formatters for an object.

Runs in the user's kernel, on the thread of the call. IPython asks an object's own
``_ipython_display_`` before a formatter that the user registered for one MIME type. For what tools
return, the user's formatters come first.
"""

from collections.abc import Callable, Mapping
from typing import Any

_REGISTRIES = ("type_printers", "deferred_printers", "singleton_printers")
"""Where a formatter of IPython's looks up what is registered."""


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
    keys = _list_keys(value)
    if any(
        formatter is not None and _has_formatter(formatter, value, keys)
        for formatter in of_all_types
    ):
        data: Mapping[str, Any] = format_(value)[0]
        return data
    formatters: Mapping[str, Any] = getattr(owner, "formatters", {})
    bundle: dict[str, Any] = {}
    for mime_type, formatter in formatters.items():
        if _has_formatter(formatter, value, keys):
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
    keys = _list_keys(value)
    return any(
        mime_type != "text/plain" and _has_formatter(formatter, value, keys)
        for mime_type, formatter in formatters.items()
    )


def _has_formatter(formatter: Any, value: Any, keys: set[Any] | None) -> bool:
    # A look-up asks for each class of the value in turn, and nearly all would be in vain.
    for name in _REGISTRIES:
        registry = getattr(formatter, name, True)
        if registry and (registry is True or keys is None or not keys.isdisjoint(registry)):
            break
    else:
        return False
    try:
        formatter.lookup(value)
    except KeyError:
        return False
    return True


def _list_keys(value: Any) -> set[Any] | None:
    """Return all by which a value may be registered; None: nobody knows but the formatter."""
    try:
        classes = value.__class__.__mro__
        names = [(getattr(kind, "__module__", None), kind.__name__) for kind in classes]
        return {id(value), *classes, *names}
    except (AttributeError, TypeError):  # a proxy, or a class that has no hash
        return None
