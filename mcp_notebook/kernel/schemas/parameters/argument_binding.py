"""How a call's arguments reach its function: by name, or by position where it takes no names.

Runs in the user's kernel: read at definition, `Binding.bind` wherever a call runs. Pure.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Binding:
    """What a function takes by position; everything else is passed by name."""

    positional: tuple[str, ...] = ()
    """Parameters, in order."""
    rest: str | None = None
    """The parameter that takes all further ones, ``*args``."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of those parameters that have one."""

    def bind(
        self, function: Callable[..., Any], arguments: dict[str, Any]
    ) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return what to call, and with which arguments by name.

        Args:
            function: The function.
            arguments: All its arguments by name.
        """
        if not self.positional and self.rest is None:
            return function, arguments
        by_name = dict(arguments)
        rest = () if self.rest is None else by_name.pop(self.rest, ())
        by_position = []
        for name in self.positional:
            if name not in by_name and name not in self.defaults:
                break  # Python says what is missing
            by_position.append(by_name.pop(name) if name in by_name else self.defaults[name])
        return functools.partial(function, *by_position, *rest), by_name


def read_binding(function: Callable[..., Any], *, offers_rest: bool = True) -> Binding:
    """Return how a callable takes its arguments.

    Args:
        function: Any callable; without a signature, it counts as taking names.
        offers_rest: Whether clients can give what ``*args`` takes.
    """
    try:
        parameters = inspect_parameters(function)
        # What is called may be a wrapper, with other parameters than the function it stands for.
        called = inspect_parameters(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return Binding()
    rest = [item.name for item in parameters if item.kind is item.VAR_POSITIONAL]
    takes_positions = any(item.kind is item.VAR_POSITIONAL for item in called)
    positional = [
        item
        for item in parameters
        if item.kind is item.POSITIONAL_ONLY
        or (item.kind is item.POSITIONAL_OR_KEYWORD and takes_positions)
    ]
    return Binding(
        tuple(item.name for item in positional),
        rest[0] if rest and offers_rest else None,
        {item.name: item.default for item in positional if item.default is not item.empty},
    )


def inspect_parameters(
    function: Callable[..., Any], *, follow_wrapped: bool = True
) -> Sequence[inspect.Parameter]:
    """Return the parameters of a callable, those that a partial has fixed left out.

    Raises:
        TypeError: It is not written in Python, and has no signature.
        ValueError: As above.
    """
    if isinstance(function, functools.partial):
        # A copy: `update_wrapper` makes `inspect` look through the partial, at what it has fixed.
        function = functools.partial(function.func, *function.args, **function.keywords)
    signature = inspect.signature(function, follow_wrapped=follow_wrapped)
    parameters = list(signature.parameters.values())
    if follow_wrapped and _is_single_dispatch_method(function):
        return parameters[1:]  # `self`: its wrapper is bound, and does not say so
    return parameters


def _is_single_dispatch_method(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return getattr(code, "co_qualname", "").startswith("singledispatchmethod.")
