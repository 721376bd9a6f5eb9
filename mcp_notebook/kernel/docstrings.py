"""What a docstring says about a function and its parameters (Google, NumPy, reST).

Runs in the user's kernel. Pure; the schema around it is `kernel.schema`'s business.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FunctionDoc:
    """A docstring, taken apart."""

    description: str = ""
    """The text before the sections."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What is said about each parameter."""


def function_doc(function: Callable[..., Any]) -> FunctionDoc:
    """Take a function's own docstring apart; one that no style fits is all description."""
    text = inspect.cleandoc(getattr(function, "__doc__", None) or "")
    if not text:
        return FunctionDoc()
    # Late: a notebook pays for the parser at its first tool, not when the extension is loaded.
    from docstring_parser import ParseError, parse  # noqa: PLC0415

    try:
        parsed = parse(text)
    except ParseError:
        return FunctionDoc(text)
    parts = [parsed.short_description, parsed.long_description]
    return FunctionDoc(
        "\n\n".join(part.strip() for part in parts if part),
        {
            # NumPy allows `x, y : int` and reST `*args`.
            name.strip().lstrip("*"): " ".join((parameter.description or "").split())
            for parameter in parsed.params
            for name in parameter.arg_name.split(",")
        },
    )
