"""What particular clients get in place of what all others get, because of what they do with it.

Runs on the bridge's event loop. This is the one place that knows clients by their names. An entry
says what was seen, in which version and when; it can go when the client has changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from mcp_notebook.bridge.server.client_request import ClientRequest
from mcp_notebook.bridge.server.mcp_types import describe_link
from mcp_notebook.content import Audio, ContentBlock, Image, ResourceLink, Result, Text
from mcp_notebook.missing_tools import META_TOOLS

_MAX_NAMES = 10
"""Names of new tools in one note."""


@dataclass(frozen=True, kw_only=True)
class Accommodation:
    """What is different for one client."""

    evidence: str = ""
    """The version in which it was seen, and the date."""
    takes_structured: bool = True
    """Whether it gets output schemas and structured content. If not, it gives its model the
    structured content in place of the content, so that pictures and links would be lost."""
    lists_again: bool = True
    """Whether it lists the tools again when it is told that they have changed."""
    takes_links: bool = True
    """Whether its model sees links. If not, a text has the address in their place."""
    takes_media: bool = True
    """Whether its model sees pictures or is told that there are some. If not, it reads their
    base64 as text, many thousand characters for each."""


ACCOMMODATIONS: Mapping[str, Accommodation] = MappingProxyType(
    {
        "codex-mcp-client": Accommodation(
            evidence="Codex CLI 0.169, 2026-11-21", takes_structured=False, lists_again=False
        ),
        "continue-cli-client": Accommodation(
            evidence="Continue CLI 1.5.47, 2026-11-22", lists_again=False, takes_media=False
        ),
        # Its model reads structured content twice: also as text, where the content has it, too.
        "copilot-cli": Accommodation(
            evidence="GitHub Copilot CLI 1.0.102, 2026-11-22",
            takes_structured=False,
            takes_links=False,
        ),
        # The end of its name is the name of the server in its settings.
        "qwen-cli-mcp-client-notebook": Accommodation(
            evidence="Qwen Code 0.24.4, 2026-11-22", lists_again=False
        ),
        "opencode": Accommodation(evidence="opencode 1.18.33, 2026-11-22", takes_links=False),
    }
)
"""By the name in the client's ``clientInfo``."""
_NONE = Accommodation()


def find_accommodation(request: ClientRequest) -> Accommodation:
    """Return what is different for the client of a request."""
    return ACCOMMODATIONS.get(request.client.name, _NONE)


def adapt_result(request: ClientRequest, result: Result) -> Result:
    """Return a result as the client of a request can take it."""
    accommodation = find_accommodation(request)
    if accommodation.takes_links and accommodation.takes_media:
        return result
    return replace(result, content=[_adapt_block(block, accommodation) for block in result.content])


def _adapt_block(block: ContentBlock, accommodation: Accommodation) -> ContentBlock:
    if isinstance(block, ResourceLink) and not accommodation.takes_links:
        text = describe_link(block)
    elif isinstance(block, Image | Audio) and not accommodation.takes_media:
        kind = "picture" if isinstance(block, Image) else "sound"
        text = (
            f"[A {kind}, {block.mime_type}, {len(block.data):,} bytes: this client cannot show it "
            "to its model. Ask for what is in it as text or numbers.]"
        )
    else:
        return block
    return Text(text, audience=block.audience, priority=block.priority)


class NewTools:
    """Tells clients that list the tools only once, in the answer of a call, which ones are new.

    Clients of 2026-07-28 cannot be followed from one request to the next, and are told nothing.

    Args:
        with_meta_tools: Whether the bridge has the tools that call others.
    """

    def __init__(self, *, with_meta_tools: bool) -> None:
        self._names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        """By connection: the tools that it has listed, or was told of."""
        self._step = (
            f"Call them with `{META_TOOLS[2]}`; `{META_TOOLS[1]}` shows their arguments."
            if with_meta_tools
            else "Ask the user to start this client again, or to start the server with "
            "`--meta-tools`: then new tools can be called at once."
        )

    def note_list(self, request: ClientRequest, names: Iterable[str]) -> None:
        """Note that a client has been sent these tools."""
        if request.connection is not None and not find_accommodation(request).lists_again:
            self._names.setdefault(request.connection, set()).update(names)

    def follow(self, request: ClientRequest) -> bool:
        """Return whether it is known which tools the client of a request has listed."""
        return request.connection is not None and request.connection in self._names

    def add_note(self, request: ClientRequest, result: Result, names: Iterable[str]) -> Result:
        """Return a result with a note on the tools that its client does not know of.

        Args:
            request: The request of a client that is followed.
            result: Its result.
            names: The tools that there are now.
        """
        listed = self._names[request.connection]
        new = [name for name in names if name not in listed]
        if not new:
            return result
        listed.update(new)
        text = ", ".join(f"`{name}`" for name in new[:_MAX_NAMES])
        more = f" and {len(new) - _MAX_NAMES} more" if len(new) > _MAX_NAMES else ""
        note = Text(f"[New tools since this client listed them: {text}{more}. {self._step}]")
        return replace(result, content=[*result.content, note])
