"""What all messages of the link have in common, and the forms that are in several of them.

Runs on both sides; pure.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ClientInfo(Message):
    """The program that calls a tool, as it says itself."""

    name: str = ""
    version: str = ""


class PackedResult(Message):
    """A `content.Result`; `content_blocks` packs and unpacks it."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False
    meta: dict[str, Any] = Field(default_factory=dict)
