"""The author's converters for types of values (`registry.convert`).

Runs in the user's kernel: converters are set wherever the author's code runs, and looked up on the
thread of each call. They apply to returned values, not to displays or structured content.
"""

import contextlib
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from mcp_notebook.content import Annotated, Result
from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.text import describe_error

Kind: TypeAlias = type | str
"""A class, or the full name of one whose module may not be loaded yet: "pandas.DataFrame"."""


class Conversion(Struct, frozen=True, eq=False):
    """A converter and the type that it converts."""

    kind: Kind
    function: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The name that the author uses for the type."""
        return self.kind if isinstance(self.kind, str) else self.kind.__name__

    def describe_failure(self, error: BaseException) -> str:
        """Describe its failure for the model and the author."""
        function = getattr(self.function, "__name__", type(self.function).__name__)
        return (
            f"The converter `{function}` of {self.name} failed: {describe_error(error)}. "
            f"`registry.convert({self.name}, None)` removes it."
        )

    @property
    def cls(self) -> type | None:
        """The class; None until a class of that name is imported."""
        if not isinstance(self.kind, str):
            return self.kind
        module, _, name = self.kind.rpartition(".")
        attribute = None
        with contextlib.suppress(Exception):  # a module's own __getattr__ may raise anything
            attribute = getattr(sys.modules.get(module), name, None)
        return attribute if isinstance(attribute, type) else None


class CustomTypes:
    """The converters of a notebook; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.conversions: Mapping[Kind, Conversion] = {}
        """The converters by type; replaced and never changed, so that reading needs no lock."""

    def set(self, kind: Any, function: Any) -> None:
        """Set the converter of a type; None removes it.

        Raises:
            DefinitionError: The type or the function is not usable.
        """
        _check_kind(kind)
        if function is not None:
            _check_function(kind, function)
        with self._lock:
            conversions = {**self.conversions}
            conversions.pop(kind, None)
            if function is not None:
                conversions[kind] = Conversion(kind, function)
            self.conversions = conversions

    def find(self, value: Any, exclude: Collection[Conversion] = ()) -> Conversion | None:
        """Return the converter of the first class of a value that has one.

        Args:
            value: Anything.
            exclude: Converters to skip, since their output is being converted.
        """
        conversions = self.conversions
        if not conversions or value is None or isinstance(value, (Annotated, Result)):
            return None
        by_class: dict[type, Conversion] = {}
        for conversion in conversions.values():
            cls = None if conversion in exclude else conversion.cls
            if cls is not None:
                by_class[cls] = conversion
        kinds = type(value).__mro__
        return next((by_class[kind] for kind in kinds if kind in by_class), None)


def _check_kind(kind: Any) -> None:
    if isinstance(kind, str):
        if all(part.isidentifier() for part in kind.split(".")) and "." in kind:
            return
        raise DefinitionError(
            f"`registry.convert` takes a class or its full name, 'pandas.DataFrame', not {kind!r}."
        )
    if not isinstance(kind, type):
        raise DefinitionError(
            "`registry.convert` takes a class or its full name, 'pandas.DataFrame', not "
            f"an object of type {type(kind).__name__}; call it once for each class."
        )
    if issubclass(kind, (Annotated, Result, type(None))):
        raise DefinitionError(
            f"`registry.convert` does not apply to values of type {kind.__name__}."
        )


def _check_function(kind: Kind, function: Any) -> None:
    name = kind if isinstance(kind, str) else kind.__name__
    if not callable(function):
        raise DefinitionError(
            f"`registry.convert({name}, ...)` takes a function of one argument, the value, not "
            f"an object of type {type(function).__name__}."
        )
    called = getattr(type(function), "__call__", None)  # noqa: B004 - of its instances
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        raise DefinitionError(
            f"`registry.convert({name}, ...)`: a converter cannot be a coroutine function; await "
            "in the tool, before it returns."
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise DefinitionError(
            f"`registry.convert({name}, ...)` calls its function with one argument, the value: "
            f"{error}."
        ) from None
