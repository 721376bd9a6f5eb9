"""The author's own pages of live views: an HTML file, or a ``%%mcp_view`` cell.

Runs in the user's kernel. A tool's page is checked on the thread that declares the tool, and made
on a thread of the resource reader, anew each time that a client opens it: so it follows its file
and its cell. The bridge adds the script that talks to the client.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Union

from msgspec import Struct

from mcp_notebook.errors import CallError, DefinitionError, ResourceFailed
from mcp_notebook.text.wording import format_size, suggest

Page: TypeAlias = Union[str, "os.PathLike[str]"]
"""What a tool's option ``ui`` can name: a file, or a ``%%mcp_view`` cell."""
ReadFile: TypeAlias = Callable[[Path, str, int], bytes]
"""Returns at most so many bytes of a file, given its path and its name in messages. Raises
`CallError` if it cannot be read, or may not be shown."""
MAX_PAGE = 8 * 2**20
"""Maximum bytes of a page."""
MAX_HOSTS = 20
"""Maximum hosts that one page may load from."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:(https?|wss?)://)?((?:\*\.)?{_LABEL}(?:\.{_LABEL})*(?::\d{{1,5}})?)/?")
_RELATIVE = " A path is relative to the notebook's folder."
_FILE_TYPES = (".html", ".htm")


class View(Struct, frozen=True):
    """The page of a ``%%mcp_view`` cell."""

    html: str
    hosts: tuple[str, ...]
    """The origins that it may load from."""


def _read_no_file(_path: Path, name: str, _limit: int) -> bytes:
    raise CallError(f"There is no file {name}.")


class OwnViews:
    """The ``%%mcp_view`` cells of a notebook, and the pages of its tools; safe on any thread.

    Args:
        folder: The notebook's folder; None: the current one.
        read_file: Reads a file that may be shown.
    """

    def __init__(
        self,
        folder: Path | None = None,
        read_file: ReadFile = _read_no_file,
    ) -> None:
        self._folder = folder or Path()
        self._read_file = read_file
        self.views: Mapping[str, View] = {}
        """Those of ``%%mcp_view`` cells, by name."""

    def take_over(self, previous: "OwnViews") -> None:
        """Take over the views of the extension that is replaced."""
        self.views = previous.views

    def define(self, name: str, html: str, hosts: Sequence[str] = ()) -> View:
        """Define a view, or replace the view of that name.

        Args:
            name: The name by which tools refer to it.
            html: The page.
            hosts: The hosts that it may load from, as the author wrote them.

        Raises:
            DefinitionError: The name or a host is invalid, or the page is empty or too large.
        """
        if not _NAME.fullmatch(name):
            raise DefinitionError(
                f"{name!r} cannot be a view's name: use 1 to 64 letters, digits, `_` and `-`, as "
                "in `%%mcp_view map`."
            )
        if not html.strip():
            raise DefinitionError(f"The view `{name}` is empty: write its HTML below the line.")
        if problem := _explain_size(html):
            raise DefinitionError(f"The view `{name}` is too large: {problem}")
        view = View(html, read_hosts(hosts, f"The view `{name}`"))
        self.views = {**self.views, name: view}
        return view

    def check(self, page: Any, tool: str) -> None:
        """Check that a tool's page exists.

        Args:
            page: The option ``ui`` of the tool.
            tool: The tool's name.

        Raises:
            DefinitionError: There is no such file or view.
        """
        if not is_own(page):
            return
        if _names_file(page):
            self._check_file(page, tool)
        elif page not in self.views:
            meant = suggest(page, [*self.views, *self._list_files()])
            raise DefinitionError(
                f"`{tool}`: there is no view {page!r}. Did you mean {meant!r}?"
                if meant
                else f"`{tool}`: there is no view {page!r}. Run the cell that begins with "
                f"`%%mcp_view {page}` first; a file's name ends with `.html`."
            )

    def list_hosts(self, page: Any, allow: Sequence[str]) -> tuple[str, ...]:
        """Return the origins that a tool's page may load from.

        Args:
            page: The option ``ui`` of the tool.
            allow: Its option ``allow``.
        """
        if not is_own(page):
            return ()
        view = self.views.get(page) if isinstance(page, str) else None
        hosts = (*(view.hosts if view else ()), *read_hosts(allow, "The tool"))
        return tuple(dict.fromkeys(hosts))

    def make_page(self, page: Any, allow: Sequence[str], tool: str) -> str:
        """Return a tool's page for the bridge: JSON with its ``html`` and its ``hosts``.

        Args:
            page: The option ``ui`` of the tool.
            allow: Its option ``allow``.
            tool: The tool's name.

        Raises:
            ResourceFailed: The page cannot be made; the message tells the client why.
        """
        html = self._read_page(page, tool)
        if problem := _explain_size(html):
            raise _fail(tool, f"it is too large: {problem}")
        html = html.encode("utf-8", "replace").decode()  # lone surrogates
        return json.dumps({"html": html, "hosts": self.list_hosts(page, allow)})

    def _read_page(self, page: Any, tool: str) -> str:
        if _names_file(page):
            return self._read(page, tool)
        view = self.views.get(page)
        if view is None:
            raise _fail(
                tool, f"the notebook has no view {page!r} now. Run its `%%mcp_view {page}` cell."
            )
        return view.html

    # -- files -------------------------------------------------------------------------------------

    def _check_file(self, page: Any, tool: str) -> None:
        try:
            self._read_file(self._folder / page, os.fspath(page), 1)
        except CallError as error:
            meant = suggest(os.fspath(page), self._list_files())
            hint = f" Did you mean {meant!r}?" if meant else _RELATIVE
            raise DefinitionError(f"`{tool}`: its view cannot be shown. {error}{hint}") from None

    def _read(self, page: Any, tool: str) -> str:
        name = os.fspath(page)
        try:
            return self._read_file(self._folder / page, name, MAX_PAGE + 1).decode("utf-8-sig")
        except CallError as error:
            raise _fail(
                tool, f"{error} Put the file there, or declare the tool with another `ui`."
            ) from None
        except UnicodeDecodeError:
            raise _fail(tool, f"the file {name} is not UTF-8 text. Save it as UTF-8.") from None

    def _list_files(self) -> list[str]:
        return sorted(path.name for path in self._folder.glob("*.htm*"))


def is_own(page: Any) -> bool:
    """Return whether a tool's option ``ui`` names a page of the author's own."""
    return page is not None and not isinstance(page, bool)


def is_page(value: Any) -> bool:
    """Return whether a value has a type that the option ``ui`` can have for an own page."""
    return isinstance(value, (str, os.PathLike)) and bool(os.fspath(value))


def read_hosts(hosts: Any, owner: str) -> tuple[str, ...]:
    """Return hosts as origins, for the policy of a page.

    Args:
        hosts: The author's list: ``"tiles.example.org"``, ``"wss://*.example.org"``.
        owner: Who may load from them, for messages.

    Raises:
        DefinitionError: They are not a list of hosts.
    """
    is_list = not isinstance(hosts, (str, bytes)) and isinstance(hosts, Iterable)
    listed = list(hosts) if is_list else [hosts]
    origins: dict[str, None] = {}
    for host in listed:
        match = _HOST.fullmatch(host) if is_list and isinstance(host, str) else None
        if match is None:
            raise DefinitionError(
                f"{owner}: `allow` must be a list of hosts, like `allow=['tiles.example.org']` "
                f"(`--allow tiles.example.org`), without a path; not {host!r}."
            )
        origins[f"{match[1] or 'https'}://{match[2].lower()}"] = None
    if len(origins) > MAX_HOSTS:
        raise DefinitionError(
            f"{owner}: `allow` has {len(origins)} hosts, and a page may load from at most "
            f"{MAX_HOSTS}."
        )
    return tuple(origins)


def _names_file(page: Any) -> bool:
    return not isinstance(page, str) or page.endswith(_FILE_TYPES) or Path(page).name != page


def _explain_size(html: str) -> str | None:
    size = len(html.encode("utf-8", "replace"))
    if size <= MAX_PAGE:
        return None
    return (
        f"its page has {format_size(size)}, and at most {format_size(MAX_PAGE)} are sent. Load "
        "libraries from a host (`allow`) and data with `notebook.call` instead."
    )


def _fail(tool: str, reason: str) -> ResourceFailed:
    return ResourceFailed(f"The view of `{tool}` cannot be shown: {reason}")
