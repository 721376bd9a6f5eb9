"""What a call shows besides its value: the vocabulary that capturing and converting share.

Runs in the user's kernel; plain data, for any thread. `calls.capture` collects outputs, and
`results.converter` turns them into content blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Printed:
    """Text that a call wrote to stdout or stderr."""

    text: str


@dataclass(frozen=True)
class Displayed:
    """A MIME bundle that a call displayed."""

    data: Mapping[str, Any]
    """MIME types and values; an image as bytes or as base64 text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


Output: TypeAlias = Printed | Displayed
Outputs: TypeAlias = Sequence[Output] | Callable[[], Sequence[Output]]
"""The outputs, or a function that returns them, since converting a value may print and display."""
