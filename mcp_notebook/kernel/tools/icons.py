"""The icons of a tool: addresses, or files and PIL images as ``data:`` addresses.

Runs in the user's kernel, at definition, on the thread that declares the tool. Files are read only
then. If PIL is installed, it measures pictures; icons work without it.
"""

import base64
import binascii
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import unquote_to_bytes, urlsplit

from msgspec import Struct

from mcp_notebook.errors import DefinitionError
from mcp_notebook.kernel.safe.libraries import is_instance
from mcp_notebook.kernel.safe.magic_numbers import detect_image_type
from mcp_notebook.kernel.safe.text import describe_error
from mcp_notebook.kernel.schemas.validation_messages import format_value, shorten_message

MAX_BYTES = 64 * 2**10
"""Maximum bytes of an icon that is part of the tool's metadata: every client reads it in every list
of tools."""
MAX_ICONS = 4
"""Maximum number of icons of one tool: sizes and themes of one picture."""
SIDES = (128, 64, 32)
"""Pixels that the longer side of a PIL image is scaled down to: the first that is small enough."""
_MAX_ADDRESS = 2_000

IconTheme = Literal["light", "dark"]
_SVG = "image/svg+xml"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # at least two letters: `C:` is a drive
_SIZE = re.compile(r"[1-9][0-9]*x[1-9][0-9]*|any")
_KINDS = "PNG, JPEG, WebP, GIF or SVG"


@dataclass(frozen=True)
class Icon:
    """A picture for a tool, shown by clients beside its name (since MCP's version 2025-11-25).

    Args:
        src: An ``https:`` or ``data:`` address, the path of a file (PNG, JPEG, WebP, GIF or SVG, at
            most 64 KB), or a PIL image (scaled down to 128 pixels). Files and images are read when
            the tool is defined.
        mime_type: Its MIME type, for an address that does not show it.
        sizes: Its sizes in pixels: ``"48x48"``, a list of such strings, or ``"any"`` for a picture
            that scales. Files and images are measured.
        theme: The background that it is made for, ``"light"`` or ``"dark"``; None: either.
    """

    src: Any
    mime_type: str | None = None
    sizes: str | Sequence[str] | None = None
    theme: IconTheme | None = None


def read_icons(icons: Any, tool: str) -> list[dict[str, Any]]:
    """Return icons under MCP's names, with the pictures of files and images inside.

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


class _Source(Struct, frozen=True):
    address: str
    mime_type: str | None = None
    size: str | None = None


def _read_icon(icon: Icon, what: str) -> dict[str, Any]:
    source = _read_source(icon.src, what)
    mime_type = icon.mime_type or source.mime_type
    if mime_type is not None and not _is_picture_type(mime_type):
        raise DefinitionError(
            f"{what} has the MIME type {format_value(icon.mime_type)}, which is not that of a "
            "picture: write `mime_type='image/png'`, for instance, or leave it out."
        )
    if icon.theme is not None and icon.theme not in get_args(IconTheme):
        raise DefinitionError(
            f"{what} has the theme {format_value(icon.theme)}: use 'light' or 'dark', or "
            "leave it out for both."
        )
    info: dict[str, Any] = {"src": source.address}
    if mime_type is not None:
        info["mimeType"] = mime_type
    sizes = _read_sizes(icon.sizes, what) or ([source.size] if source.size else [])
    if sizes:
        info["sizes"] = sizes
    if icon.theme is not None:
        info["theme"] = icon.theme
    return info


def _is_picture_type(mime_type: Any) -> bool:
    return isinstance(mime_type, str) and bool(
        re.fullmatch(r"image/[A-Za-z0-9][A-Za-z0-9.+-]*", mime_type)
    )


def _read_sizes(sizes: Any, what: str) -> list[str]:
    if sizes is None:
        return []
    listed = [sizes] if isinstance(sizes, str) else sizes
    if isinstance(listed, Iterable):
        texts = list(listed)
        if all(isinstance(size, str) and _SIZE.fullmatch(size) for size in texts):
            return texts
    raise DefinitionError(
        f"{what} has the sizes {format_value(sizes)}: write `sizes='48x48'`, a list of such "
        "strings, or 'any' for a picture that scales."
    )


# -- sources of icons ------------------------------------------------------------------------------


def _read_source(src: Any, what: str) -> _Source:
    if is_instance(src, "PIL.Image.Image"):
        return _encode_pil_image(src, what)
    if isinstance(src, Path):
        return _read_file(src, what)
    if not isinstance(src, str):
        raise DefinitionError(
            f"{what} is of type {type(src).__name__}: use an https or data address, the path of a "
            "file, or a PIL image."
        )
    scheme = match[1].lower() if (match := _ADDRESS.match(src)) else None
    if scheme is None:
        return _read_file(Path(src), what)
    if scheme == "data":
        return _read_data_address(src, what)
    if scheme == "https":
        return _read_web_address(src, what)
    advice = "use its path" if scheme == "file" else "use an https address, or a file's path"
    raise DefinitionError(
        f"{what} {format_value(src)} is a `{scheme}:` address, which clients do not accept: "
        f"{advice}."
    )


def _read_web_address(address: str, what: str) -> _Source:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host or not address.isascii() or re.search(r"[\s\x00-\x1f\x7f]", address):
        raise DefinitionError(
            f"{what} {format_value(address)} is not a complete web address: write it as a browser "
            "shows it, 'https://example.com/icon.png'."
        )
    if len(address) > _MAX_ADDRESS:
        raise DefinitionError(
            f"{what} has an address of {len(address):,} characters, more than {_MAX_ADDRESS:,}: "
            "use its file instead."
        )
    return _Source(address)


def _read_data_address(address: str, what: str) -> _Source:
    head, comma, payload = address[len("data:") :].partition(",")
    mime_type, *parameters = head.split(";")
    if not comma or not _is_picture_type(mime_type) or not address.isascii():
        raise DefinitionError(
            f"{what} {format_value(address[:60])}... is not the data address of a picture: begin "
            "it with 'data:image/png;base64,', for instance, or use the picture's file."
        )
    try:
        encoded = parameters[-1:] == ["base64"]
        data = base64.b64decode(payload, validate=True) if encoded else unquote_to_bytes(payload)
    except (binascii.Error, ValueError) as error:
        raise DefinitionError(
            f"{what} is a data address with invalid base64 ({error}): use the picture's file."
        ) from None
    _check_length(len(data), what)
    picture = _detect_picture(data)
    if picture is None and mime_type in _TYPES:
        raise DefinitionError(
            f"{what} is a data address without a picture: use the file of a {_KINDS} picture."
        )
    return _Source(address, mime_type, picture[1] if picture else None)


def _read_file(path: Path, what: str) -> _Source:
    what = f"{what} {format_value(str(path))}"
    try:
        path = path.expanduser()
        if path.is_dir():
            raise DefinitionError(f"{what} is a folder: use the path of a picture in it.")
        if not path.is_file():
            raise DefinitionError(
                f"{what} is not a file in {format_value(str(Path.cwd()))}: correct the path, "
                "or use an absolute one."
            )
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
            size = len(data) if len(data) <= MAX_BYTES else path.stat().st_size
    except (OSError, RuntimeError, ValueError) as error:  # no home folder; a NUL in the path
        raise DefinitionError(
            f"{what} cannot be read ({shorten_message(describe_error(error))}): correct the path, "
            "or the file's permissions."
        ) from None
    _check_length(size, what)
    picture = _detect_picture(data)
    if picture is None:
        raise DefinitionError(f"{what} is not a picture that clients can show: use {_KINDS}.")
    return _Source(_make_data_address(data, picture[0]), *picture)


def _check_length(size: int, what: str) -> None:
    if size > MAX_BYTES:
        raise DefinitionError(
            f"{what} has {size:,} bytes, and clients read it in every list of tools: make it "
            f"smaller than {MAX_BYTES:,} bytes (128x128 pixels are enough), pass it as a PIL image "
            "(`PIL.Image.open(path)`), which is scaled down, or use an https address."
        )


def _encode_pil_image(image: Any, what: str) -> _Source:
    try:
        for side in SIDES:
            small = image.copy()
            # Scaling mixes colours, which is impossible in a palette.
            small = small.convert("RGBA" if "A" in small.getbands() or small.info else "RGB")
            small.thumbnail((side, side))
            buffer = io.BytesIO()
            small.save(buffer, format="PNG")
            data = buffer.getvalue()
            if len(data) <= MAX_BYTES:
                break
    except Exception as error:  # PIL raises anything on broken images
        raise DefinitionError(
            f"{what} is a PIL image that cannot be encoded "
            f"({shorten_message(describe_error(error))}): use another."
        ) from error
    return _Source(
        _make_data_address(data, "image/png"), "image/png", f"{small.width}x{small.height}"
    )


def _make_data_address(data: bytes, mime_type: str) -> str:
    return f"data:{mime_type};base64,{base64.b64encode(data).decode('ascii')}"


# -- types of pictures -----------------------------------------------------------------------------

_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif", _SVG})


def _detect_picture(data: bytes) -> tuple[str, str | None] | None:
    """Return the MIME type of a picture, and its size if known; None if it is not a picture."""
    mime_type = detect_image_type(data)
    if mime_type is None:
        return (_SVG, "any") if _is_svg(data) else None
    try:
        import PIL.Image  # noqa: PLC0415 - only for pictures, and only if it is there
    except ImportError:
        return mime_type, None
    try:
        with PIL.Image.open(io.BytesIO(data)) as image:
            return mime_type, f"{image.width}x{image.height}"
    except Exception:  # noqa: BLE001 - PIL raises anything on broken files
        return None


def _is_svg(data: bytes) -> bool:
    """Return whether the root element of an XML document is that of SVG."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - its usual name; only for this

    try:
        # Only the first element: the client parses the rest.
        _, root = next(ET.iterparse(io.BytesIO(data), events=("start",)))  # noqa: S314
    except (ET.ParseError, StopIteration, ValueError, LookupError):
        return False
    return str(root.tag) in ("svg", "{http://www.w3.org/2000/svg}svg")
