"""The icons of a tool: addresses, or files as ``data:`` addresses.

Runs in the user's kernel, at definition, on the thread that declares the tool. Files are read only
then.
"""

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.magic_numbers import detect_image_type
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.validation_messages import format_value, shorten_message

MAX_BYTES = 64 * 2**10
"""Maximum bytes of an icon that is part of the tool's metadata: every client reads it in every list
of tools."""
MAX_ICONS = 4
"""Maximum number of icons of one tool: sizes and themes of one picture."""

IconTheme = Literal["light", "dark"]
_WEB_ADDRESS = re.compile(r"https://[!-~]{1,2000}", re.IGNORECASE)
_DATA_ADDRESS = re.compile(r"data:(image/[a-z0-9.+-]+)[;,][!-~]*", re.IGNORECASE)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # at least two letters: `C:` is a drive
_SIZE = re.compile(r"[1-9][0-9]*x[1-9][0-9]*|any")
_PICTURE_TYPE = re.compile(r"image/[A-Za-z0-9][A-Za-z0-9.+-]*")


@dataclass(frozen=True)
class Icon:
    """A picture for a tool, shown by clients beside its name (since MCP's version 2025-11-25).

    Args:
        src: An ``https:`` or ``data:`` address, or the path of a file (PNG, JPEG, WebP, GIF or SVG,
            at most 64 KB), which is read when the tool is defined.
        mime_type: Its MIME type, for an address that does not show it.
        sizes: Its sizes in pixels: ``"48x48"``, a list of such strings, or ``"any"`` for a picture
            that scales.
        theme: The background that it is made for, ``"light"`` or ``"dark"``; None: either.
    """

    src: Any
    mime_type: str | None = None
    sizes: str | Sequence[str] | None = None
    theme: IconTheme | None = None


def read_icons(icons: Any, tool: str) -> list[dict[str, Any]]:
    """Return icons under MCP's names, with the pictures of files inside.

    Args:
        icons: The author's list; each item is an `Icon`, or a value for its `src`.
        tool: The tool's name, for messages.

    Raises:
        DefinitionError: One of them cannot be used; the message names it.
    """
    if isinstance(icons, (str, bytes, Path, Icon)) or not isinstance(icons, Iterable):
        raise DefinitionError(
            f"`{tool}`: `icons` must be a list, even for a single icon: `icons=[...]`."
        )
    listed = list(icons)
    if len(listed) > MAX_ICONS:
        raise DefinitionError(
            f"`{tool}`: {len(listed)} icons are too many, since clients read them in every list of "
            f"tools: use at most {MAX_ICONS}."
        )
    return [
        _read_icon(icon if isinstance(icon, Icon) else Icon(icon), f"`{tool}`: its icon")
        for icon in listed
    ]


def restore_icon(info: Mapping[str, Any]) -> Icon:
    """Return an `Icon` for what `read_icons` returned, with its picture inside."""
    return Icon(info["src"], info.get("mimeType"), info.get("sizes"), info.get("theme"))


def _read_icon(icon: Icon, what: str) -> dict[str, Any]:
    address, mime_type = _read_source(icon.src, what)
    mime_type = icon.mime_type or mime_type
    sizes = [icon.sizes] if isinstance(icon.sizes, str) else list(icon.sizes or ())
    _check(
        what, "MIME type", icon.mime_type, mime_type is None or _matches(_PICTURE_TYPE, mime_type)
    )
    _check(what, "sizes", icon.sizes, all(_matches(_SIZE, each) for each in sizes))
    _check(what, "theme", icon.theme, icon.theme in (None, "light", "dark"))
    info = {"src": address, "mimeType": mime_type, "sizes": sizes, "theme": icon.theme}
    return {name: value for name, value in info.items() if value}


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _check(what: str, part: str, value: Any, is_right: bool) -> None:  # noqa: FBT001 - the answer
    if not is_right:
        raise DefinitionError(
            f"{what} has the {part} {format_value(value)}: write `Icon(src, "
            "mime_type='image/png', sizes='48x48', theme='dark')`, or leave it out."
        )


def _read_source(src: Any, what: str) -> tuple[str, str | None]:
    """Return an icon's address and its MIME type, if that is known."""
    if isinstance(src, str) and _ADDRESS.match(src):
        data = _DATA_ADDRESS.fullmatch(src)
        if data is None and not _WEB_ADDRESS.fullmatch(src):
            raise DefinitionError(
                f"{what} {format_value(src[:60])} is not an address that clients take: use an "
                "`https:` address, `data:image/png;base64,...`, or the path of a file."
            )
        _check_size(len(src) * 3 // 4, what)
        return src, None if data is None else data[1]
    if not isinstance(src, (str, Path)):
        raise DefinitionError(
            f"{what} is of type {type(src).__name__}: use an address, or the path of a file."
        )
    what = f"{what} {format_value(str(src))}"
    try:
        with Path(src).expanduser().open("rb") as file:
            data_of_file = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:  # no home folder; a NUL in the path
        raise DefinitionError(
            f"{what} cannot be read ({shorten_message(describe_error(error))}): correct the path, "
            f"which begins at {format_value(str(Path.cwd()))}."
        ) from None
    _check_size(len(data_of_file), what)
    mime_type = detect_image_type(data_of_file)
    if mime_type is None and mimetypes.guess_type(str(src))[0] == "image/svg+xml":
        mime_type = "image/svg+xml"
    if mime_type is None:
        raise DefinitionError(f"{what} is not a picture: use PNG, JPEG, WebP, GIF or SVG.")
    return f"data:{mime_type};base64,{base64.b64encode(data_of_file).decode('ascii')}", mime_type


def _check_size(size: int, what: str) -> None:
    if size > MAX_BYTES:
        raise DefinitionError(
            f"{what} has more than {MAX_BYTES:,} bytes, and clients read it in every list of "
            "tools: make it smaller (128x128 pixels are enough), or use an https address."
        )
