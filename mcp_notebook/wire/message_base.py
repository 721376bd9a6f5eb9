"""What all messages of the link have in common, and the form of a result in several of them.

Runs on both sides; pure.

Tested in ``tests/wire/test_messages.py``.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PackedResult(Message):
    """A `content.Result`; `content_blocks` packs and unpacks it."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = Field(default_factory=dict)
