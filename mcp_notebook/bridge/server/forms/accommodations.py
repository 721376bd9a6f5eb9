"""Workarounds for specific clients; the default suits all unknown ones.

Runs on the bridge's event loop. This is the only module that knows clients by name. Most programs
that are built with a framework call themselves ``mcp 0.1.0``, so the default suits the weakest of
them: some fail on a result with a link, and some give their model only the first block. Each entry
names the version in which the behaviour was seen, and when; remove it once the client is fixed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from mcp_notebook.bridge.access.caller import Caller
from mcp_notebook.bridge.access.permitted_tools import PermittedTools
from mcp_notebook.bridge.server.sessions.client_profile import ClientProfile
from mcp_notebook.bridge.server.sessions.client_request import ClientRequest
from mcp_notebook.content import (
    Audio,
    ContentBlock,
    Image,
    Resource,
    ResourceLink,
    Result,
    Text,
)
from mcp_notebook.settings.settings import MetaTools
from mcp_notebook.text.missing_tools import META_TOOLS
from mcp_notebook.wire import resource_uris

_MAX_NAMES = 10
"""Maximum number of names of new tools in one note."""


@dataclass(frozen=True, kw_only=True)
class Accommodation:
    """The workarounds for one client."""

    evidence: str = ""
    """The version in which the behaviour was seen, and the date."""
    lists_again: bool = True
    """Whether it lists the tools again after a notification that they have changed."""
    hears_of_changes: bool = True
    """Whether to notify it that tools have changed, and to declare that, if its era has no
    subscriptions."""
    lists_late: bool = False
    """Whether it lists changed tools after the answer of the call that changed them, and so tells
    its model of them too late. Answers wait for its list. With a screen, Claude Code lists after
    0.3 s, and at most once a second."""
    takes_links: bool = False
    """Whether its model sees links. If not, each is replaced by a text with its address: AutoGen
    0.7 and Semantic Kernel 1.45 fail on a result with a link, and Strands, Agno, CrewAI, smolagents
    and DSPy drop it (2026-11-23)."""
    takes_all_blocks: bool = False
    """Whether its model sees all content blocks. If not, adjacent texts are joined, and a picture
    comes before the texts around it: smolagents 1.26 and CrewAI 1.15 use only the first block,
    which could be the output printed before a plot (2026-11-23)."""
    takes_media: bool = True
    """Whether its model sees pictures and sounds, or at least a note about them. If not, it would
    read their base64 as text, many thousand characters each."""
    takes_all_messages: bool = True
    """Whether its model gets all messages of a prompt. If not, they become one text: it gets the
    first message only, and fails if that is no text."""


ACCOMMODATIONS: Mapping[str, Accommodation] = MappingProxyType(
    {
        "claude-code": Accommodation(
            evidence="Claude Code 2.1.330, 2026-11-29",
            lists_late=True,
            takes_links=True,
            takes_all_blocks=True,
        ),
        "codex-mcp-client": Accommodation(
            evidence="Codex CLI 0.169, 2026-11-21",
            lists_again=False,
            takes_links=True,
            takes_all_blocks=True,
        ),
        "continue-cli-client": Accommodation(
            evidence="Continue CLI 1.5.47, 2026-11-22",
            lists_again=False,
            takes_links=True,
            takes_all_blocks=True,
            takes_media=False,
        ),
        "copilot-cli": Accommodation(
            evidence="GitHub Copilot CLI 1.0.102, 2026-11-22", takes_all_blocks=True
        ),
        "gemini-cli-mcp-client": Accommodation(
            evidence="Gemini CLI 0.61, 2026-11-29", lists_late=True, takes_all_messages=False
        ),
        # The name ends with the server's name in the client's settings.
        "qwen-cli-mcp-client-notebook": Accommodation(
            evidence="Qwen Code 0.24.4, 2026-11-27",
            lists_again=False,
            takes_links=True,
            takes_all_blocks=True,
            takes_all_messages=False,
        ),
        "opencode": Accommodation(
            evidence="opencode 1.18.33, 2026-11-29", lists_late=True, takes_all_blocks=True
        ),
    }
)
"""By the name in the client's ``clientInfo``."""
_DEFAULT = Accommodation()
_SDK = "mcp"
"""The Python SDK's own name, which most frameworks keep."""
_SEMANTIC_KERNEL = Accommodation(
    evidence="Semantic Kernel 1.45, 2026-11-28", hears_of_changes=False
)
"""When it hears that tools have changed, it lists them before it reads on, so it waits for an
answer that it never reads, and all its calls hang. Of all programs with the SDK's name, it and
AutoGen's `McpWorkbench` declare sampling and nothing else; AutoGen 0.7 ignores notifications, and
lists the tools for each turn anyway."""


def find_accommodation(profile: ClientProfile) -> Accommodation:
    """Return the workarounds for a client."""
    if profile.client.name == _SDK and profile.only_samples:
        return _SEMANTIC_KERNEL
    return ACCOMMODATIONS.get(profile.client.name, _DEFAULT)


class ResultAdapter:
    """Adapts the results of calls to their clients; one per bridge.

    For clients that list the tools only once, it adds a note about new tools. Not for clients of
    2026-07-28: they have no session that remembers which tools they have listed.

    Args:
        tools: The tools, as callers see them.
        note_links: Called with the caller and any result that may link to resources.
        with_meta_tools: Whether the bridge has the tools that call others. With "only", there is no
            note: new tools are found like all others.
    """

    def __init__(
        self,
        tools: PermittedTools,
        note_links: Callable[[Caller, Result], None],
        *,
        with_meta_tools: MetaTools,
    ) -> None:
        self._tools = tools
        self._note_links = note_links
        self._adds_notes = with_meta_tools != "only"
        self._names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        """By connection: the tools that its client has listed, or knows from a note."""
        self._step = (
            f"Call them with `{META_TOOLS[2]}`; `{META_TOOLS[1]}` shows their arguments."
            if with_meta_tools
            else "Ask the user to start this client again, or to start the server with "
            "`--meta-tools`: then new tools can be called at once."
        )

    def note_list(self, request: ClientRequest, names: Iterable[str]) -> None:
        """Note that a client has been sent these tools."""
        lists_again = find_accommodation(request.profile).lists_again
        if self._adds_notes and request.connection is not None and not lists_again:
            self._names.setdefault(request.connection, set()).update(names)

    def adapt(self, request: ClientRequest, result: Result) -> Result:
        """Return a result in the form that a request's client can use."""
        if result.meta or not _is_one_text(result):
            self._note_links(request.caller, result)
        if request.connection is not None and request.connection in self._names:
            result = self._add_note(request, result)
        return result if _is_one_text(result) else _adapt_blocks(request, result)

    def adapt_messages(self, request: ClientRequest, result: Result) -> Result:
        """Return the messages of a prompt in the form that a request's client can use."""
        if _is_one_text(result):
            return result
        self._note_links(request.caller, result)
        accommodation = find_accommodation(request.profile)
        if not accommodation.takes_all_messages:
            return replace(result, content=[_join_messages(result.content)])
        return replace(result, content=_replace_blocks(accommodation, result.content))

    def _add_note(self, request: ClientRequest, result: Result) -> Result:
        """Return a result with a note on the tools that its client does not know of."""
        listed = self._names[request.connection]
        names = [entry.name for entry in self._tools.list_entries(request.caller)]
        new = [name for name in names if name not in listed]
        if not new:
            return result
        listed.update(new)
        text = ", ".join(f"`{name}`" for name in new[:_MAX_NAMES])
        more = f" and {len(new) - _MAX_NAMES} more" if len(new) > _MAX_NAMES else ""
        note = Text(f"[New tools since this client listed them: {text}{more}. {self._step}]")
        return replace(result, content=[*result.content, note])


def _is_one_text(result: Result) -> bool:
    """Return whether a result is a single text, which every client can use."""
    return len(result.content) == 1 and type(result.content[0]) is Text


def _adapt_blocks(request: ClientRequest, result: Result) -> Result:
    """Return a result whose content blocks the client of a request can use."""
    accommodation = find_accommodation(request.profile)
    content = _replace_blocks(accommodation, result.content)
    if not accommodation.takes_all_blocks:
        content = _put_picture_first(_join_texts(content))
    return replace(result, content=content)


def _replace_blocks(
    accommodation: Accommodation, content: Sequence[ContentBlock]
) -> Sequence[ContentBlock]:
    """Replace the blocks that a client's model does not see by texts."""
    if not accommodation.takes_links:
        content = list(_replace_links(content))
    if not accommodation.takes_media:
        content = [
            _describe_media(each) if isinstance(each, Image | Audio) else each for each in content
        ]
    return content


def _replace_links(content: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """Replace links by text; adjacent links to forms of the same original become one text."""
    forms: list[ResourceLink] = []
    for block in [*content, None]:
        if forms and not (isinstance(block, ResourceLink) and _lead_to_one(forms[0], block)):
            first = forms[0]
            yield Text(
                resource_uris.describe_links(forms),
                audience=first.audience,
                priority=first.priority,
                role=first.role,
            )
            forms = []
        if isinstance(block, ResourceLink):
            forms.append(block)
        elif block is not None:
            yield block


def _lead_to_one(link: ResourceLink, other: ResourceLink) -> bool:
    """Return whether two links lead to forms of the same original in a kernel."""
    uris = (link.uri, other.uri)
    are_kept = all(resource_uris.find_kernel_id(uri) for uri in uris)
    return are_kept and len({uri.rpartition("/")[0] for uri in uris}) == 1


def _describe_media(block: Image | Audio) -> Text:
    kind = "picture" if isinstance(block, Image) else "sound"
    text = (
        f"[A {kind}, {block.mime_type}, {len(block.data):,} bytes: this client cannot show it "
        "to its model. Ask for its content as text or numbers.]"
    )
    return Text(text, audience=block.audience, priority=block.priority, role=block.role)


def _join_messages(content: Sequence[ContentBlock]) -> Text:
    """Return the messages of a prompt as one text of the user's."""
    texts = []
    for block in content:
        match block:
            case Text(text) | Resource(data=str(text)):
                pass
            case Image() | Audio():
                text = _describe_media(block).text
            case ResourceLink():
                text = resource_uris.describe_links([block])
            case Resource():
                text = f"[A file, {block.mime_type}, {len(block.data):,} bytes: {block.uri}]"
        texts.append(f"Assistant: {text}" if block.role == "assistant" else text)
    return Text("\n\n".join(texts))


def _join_texts(content: Sequence[ContentBlock]) -> list[ContentBlock]:
    """Join adjacent texts that have the same annotations."""
    joined: list[ContentBlock] = []
    for block in content:
        last = joined[-1] if joined else None
        if (
            isinstance(block, Text)
            and isinstance(last, Text)
            and replace(last, text=block.text) == block  # alike but for the text
        ):
            joined[-1] = replace(last, text=f"{last.text}\n\n{block.text}")
        else:
            joined.append(block)
    return joined


def _put_picture_first(content: list[ContentBlock]) -> list[ContentBlock]:
    """Move the first picture before the texts that precede it, unless texts are captions."""
    first = next((i for i, block in enumerate(content) if isinstance(block, Image)), 0)
    pictures = sum(isinstance(block, Image) for block in content)
    before = content[:first]
    if not before or not all(isinstance(block, Text) for block in before):
        return content
    if pictures > 1 and any(isinstance(block, Text) for block in content[first:]):
        return content  # the order shows which caption belongs to which picture
    return [content[first], *_join_texts([*before, *content[first + 1 :]])]
