"""The caller of a request, and the tools that it may call.

Runs on the bridge's event loop; no I/O. The gate stores the caller of an HTTP request in its ASGI
scope; over stdio, the whole process has one caller.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property

from mcp_notebook import meta_keys
from mcp_notebook.bridge.kernels.catalog import CatalogEntry
from mcp_notebook.settings.settings import ErrorDetail, Settings

SCOPE_KEY = "mcp_notebook.caller"
"""Key of the `Caller` in the ASGI scope of an HTTP request."""
PROPOSE = "propose_cell"
"""The name of the kernels' own tool by which clients propose cells."""


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """Which tools may be called; the default allows all.

    A tool must satisfy every condition that is set.
    """

    tools: tuple[str, ...] = ()
    """Shell patterns; one of them must match the tool's own name or its full name,
    ``<notebook>.<tool>``. Empty: any name. The served name is not matched: it may change when
    another notebook is opened."""
    tags: frozenset[str] = frozenset()
    """The tool must have at least one of these tags; empty: any tags or none."""
    read_only: bool = False
    """Whether the tool's annotations must say that it is read-only (``readOnlyHint``)."""
    hidden: tuple[str, ...] = ()
    """Shell patterns; none of them may match the tool's name or its full name."""
    within: "Permissions | None" = None
    """Permissions that must also allow the tool."""
    one_of: tuple["Permissions", ...] = ()
    """Permissions, at least one of which must allow the tool; empty: no condition."""
    names_proposals: bool = False
    """Whether cells may be proposed only if `tools` has `PROPOSE` itself, although all tools are
    allowed: for users of an OAuth issuer."""

    @classmethod
    def allow_any(cls, permissions: Sequence["Permissions"]) -> "Permissions":
        """Return permissions that allow a tool if any of these does."""
        if any(each.is_everything for each in permissions):
            return replace(
                EVERYTHING, names_proposals=not any(each.may_propose for each in permissions)
            )
        return permissions[0] if len(permissions) == 1 else cls(one_of=tuple(permissions))

    @classmethod
    def from_settings(cls, settings: Settings) -> "Permissions":
        """Return the permissions that the settings set for all callers."""
        limits = cls(tools=settings.tools, hidden=settings.exclude, read_only=settings.read_only)
        return EVERYTHING if limits == EVERYTHING else limits

    @cached_property
    def is_everything(self) -> bool:
        """Whether all tools of authors are allowed."""
        return replace(self, names_proposals=False) == EVERYTHING

    @cached_property
    def may_propose(self) -> bool:
        """Whether cells may be proposed: no pattern and no tag allows it, only its own name."""
        is_open = not (self.tools or self.tags or self.one_of or self.names_proposals)
        return (
            (is_open or PROPOSE in self.tools or any(each.may_propose for each in self.one_of))
            and not self.read_only
            and not _match((PROPOSE,), self.hidden)
            and (self.within is None or self.within.may_propose)
        )

    def limit_to(self, others: "Permissions") -> "Permissions":
        """Return permissions that allow a tool if both do."""
        if others.is_everything:
            return self
        if self.is_everything:
            return replace(others, names_proposals=self.names_proposals)
        within = others if self.within is None else self.within.limit_to(others)
        return replace(self, within=within)

    def allow(self, entry: CatalogEntry) -> bool:
        """Return whether a tool may be called."""
        if entry.tool.proposes:
            return self.may_propose
        return (
            self.allow_name(entry.tool.name, entry.full_name)
            and (not self.tags or not self.tags.isdisjoint(_read_tags(entry)))
            and (not self.read_only or (entry.tool.annotations or {}).get("readOnlyHint") is True)
            and (self.within is None or self.within.allow(entry))
            and (not self.one_of or any(each.allow(entry) for each in self.one_of))
        )

    def allow_name(self, *names: str) -> bool:
        """Return whether the names allow a tool, regardless of the other conditions."""
        return (not self.tools or _match(names, self.tools)) and not _match(names, self.hidden)


EVERYTHING = Permissions()
"""All tools."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The caller of a request."""

    name: str
    """Identifies the caller in the log, in questions and for limits; callers cannot choose it.
    "owner" has the endpoint's own token, "stdio" started the bridge."""
    alias: str = ""
    """A display name to show beside `name`; the caller may have chosen it."""
    permissions: Permissions = field(default=EVERYTHING)
    identity: str = ""
    """Owner of the caller's sessions, waiting calls and results; if empty, its name. It is unique,
    even among tokens that had the same name one after the other."""

    errors: ErrorDetail = "short"
    """What it gets of a failing tool's error."""
    is_user: bool = False
    """Whether it is the user, who has the endpoint's own token or started the bridge over
    stdio. All other callers are guests."""

    @cached_property
    def owns(self) -> str:
        """Owner of the caller's sessions, waiting calls and results."""
        return self.identity or self.name

    @property
    def guest(self) -> str:
        """`owns` for kernels, which keep a share of everything for the user; empty for the user."""
        return "" if self.is_user else self.owns


OWNER = Caller(name="owner", is_user=True, errors="full")
"""The owner of the endpoint's own token: the user."""


def _match(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _read_tags(entry: CatalogEntry) -> frozenset[str]:
    tags = (entry.tool.meta or {}).get(meta_keys.TAGS)
    return frozenset(map(str, tags)) if isinstance(tags, list) else frozenset()
