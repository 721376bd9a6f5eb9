"""Values that are hard to show, and what tests read of results."""

import base64
import dataclasses
import enum

from pydantic import BaseModel

from mcp_notebook.content import Text

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def texts(result):
    return [block.text for block in result.content if isinstance(block, Text)]


def only_text(result):
    [block] = result.content
    return block.text


def kinds(result):
    return [type(block).__name__ for block in result.content]


class Broken:
    def __repr__(self):
        raise RuntimeError("no repr today")


class Endless:
    def __repr__(self):
        return repr(self)


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    label: str | None = None


@dataclasses.dataclass
class Segment:
    start: Point
    length: float


class NoClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")
