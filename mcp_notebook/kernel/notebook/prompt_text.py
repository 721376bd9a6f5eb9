"""The Markdown of a prompt, with fields for its arguments.

Runs in the user's kernel; pure. The text is parsed when the prompt is declared, and filled in for
each client that gets it. Arguments are inserted as text and never interpreted: a field is only a
parameter's name, without attributes, indices, conversions or format specs.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from string import Formatter
from typing import Any, Self

from msgspec import Struct

from mcp_notebook.errors import DefinitionError
from mcp_notebook.text.wording import suggest

_BRACES = "`{{` and `}}` stand for braces"


class PromptText(Struct, frozen=True):
    """A text in parts: each is literal text and the name of the field after it, if one follows."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str, names: Collection[str], prompt: str) -> Self:
        """Return a text in parts.

        Args:
            text: The text, with ``{name}`` for fields and doubled braces for single ones.
            names: The prompt's parameters.
            prompt: The prompt's name, for messages.

        Raises:
            DefinitionError: A brace does not belong to a field, or a field is no parameter.
        """
        try:
            parsed = [
                (literal, _write_field(field, spec, conversion))
                for literal, field, spec, conversion in Formatter().parse(text)
            ]
        except ValueError:
            raise DefinitionError(
                f"`{prompt}`: a brace in its text is not a pair around a parameter's name; "
                f"{_BRACES}."
            ) from None
        for _, field in parsed:
            if field is not None and field not in names:
                raise DefinitionError(_explain_unknown(field, names, prompt))
        return cls(tuple(parsed))

    def fill(self, arguments: Mapping[str, Any]) -> str:
        """Return the text with the arguments in place of the fields."""
        return "".join(
            literal if field is None else literal + _write(arguments[field])
            for literal, field in self.parts
        )


def _write_field(field: str | None, spec: str | None, conversion: str | None) -> str | None:
    """Return a field as it stands between its braces."""
    if field is None:
        return None
    return f"{field}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"


def _explain_unknown(field: str, names: Collection[str], prompt: str) -> str:
    close = suggest(field, names)
    if close:
        return f"`{prompt}` has no parameter `{field}`. Did you mean `{{{close}}}`?"
    if field.isidentifier():
        hint = f"add it to the signature, or write `{{{{{field}}}}}` for text in braces"
    else:
        hint = f"a field is only a parameter's name; {_BRACES}"
    return f"`{prompt}` has no parameter for `{{{field}}}` in its text: {hint}."


def _write(value: Any) -> str:
    """Return an argument as text, as its client would write it."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(_write, value))
    return "" if value is None else str(value)
