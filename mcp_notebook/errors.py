"""Every error of the package, in one tree.

::

    McpNotebookError
    ├── DefinitionError        the author's tool cannot be declared (shown in the notebook)
    │   └── NoSuchTool         the author named a tool that the notebook does not have
    ├── CallError              a call failed: the client gets it as a result with isError
    │   ├── ToolError          raised by an author on purpose: its text is for the model
    │   ├── InvalidArguments   the client's arguments do not fit the tool's input schema
    │   ├── InvalidResult      what the tool returned does not fit its output schema
    │   ├── UnknownTool        no tool of that name (a protocol error, -32602, on the wire)
    │   ├── UnknownState       no call waits for this answer (-32602 on the wire)
    │   ├── UnknownResource    no resource of that URI, or it has expired (-32602 on the wire)
    │   ├── ResourceFailed     a resource's content cannot be made (-32603 on the wire)
    │   ├── AmbiguousTool      two notebooks have a tool of that name
    │   ├── CannotElicit       the client's user cannot be asked
    │   ├── InvalidAnswer      the user's answer does not fit the question
    │   ├── Cancelled          the client or the user stopped the call
    │   ├── TimedOut           its time limit stopped the call
    │   └── KernelGone         the kernel died, restarted or unloaded the extension
    ├── LinkError              our own link between kernel and bridge
    │   ├── FrameError         bytes that are no frame of ours
    │   └── VersionMismatch    the two sides speak different versions of the link
    ├── NotebookError          a headless notebook cannot be served
    ├── BridgeError            the background bridge cannot be started or stopped
    └── SettingsError          an option or environment variable has a wrong value

Each message names the thing, the cause and the next step. Runs in every process.
"""

from mcp_notebook.wording import suggest


class McpNotebookError(Exception):
    """Base of all errors that this package raises on purpose."""


class DefinitionError(McpNotebookError):
    """A tool cannot be declared as written; the message is for its author."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: the sentence says all, and our frames nothing.
        return [f"{type(self).__name__}: {self}"]


class NoSuchTool(DefinitionError, KeyError):
    """The notebook has no tool of the name that its author gave.

    Args:
        name: The name.
        known: The names that exist, for a suggestion.
    """

    def __init__(self, name: object, known: tuple[str, ...] = ()) -> None:
        close = suggest(str(name), known)
        hint = f"did you mean {close!r}?" if close else f"tools: {', '.join(known) or 'none'}."
        super().__init__(f"This notebook has no tool {name!r}; {hint}")

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show it in quotes


class CallError(McpNotebookError):
    """A call failed; the message is for the model and its user."""


class ToolError(CallError):
    """Raise this in a tool to answer with exactly this text and no traceback."""


class InvalidArguments(CallError):
    """The arguments of a call do not fit the tool's input schema."""


class InvalidResult(CallError):
    """What a tool returned does not fit its output schema, or cannot be sent as data."""


class UnknownTool(CallError):
    """The client asked for a tool that no live notebook has.

    Args:
        name: The name that was asked for.
        known: The names that exist, for a suggestion.
    """

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        self.name = name
        shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")  # noqa: PLR2004
        hint = f"The tools are: {shown}." if known else "No live notebook offers a tool now."
        super().__init__(f"Unknown tool: {name!r}. {hint}")


class AmbiguousTool(CallError):
    """The client called a bare name that two live notebooks offer.

    Args:
        name: The bare name.
        candidates: The full names to use in its place.
    """

    def __init__(self, name: str, candidates: tuple[str, ...]) -> None:
        self.name = name
        super().__init__(
            f"{len(candidates)} live notebooks have a tool {name!r}. "
            f"Call it by its full name: {' or '.join(candidates)}."
        )


class UnknownState(CallError):
    """The client goes on with a call that does not wait for it."""

    def __init__(self) -> None:
        super().__init__(
            "Invalid or expired requestState: no call of this tool with these arguments waits for "
            "an answer by it. Call the tool again, without the state."
        )


class UnknownResource(CallError):
    """The client asked for a resource that there is not, or not any more.

    Args:
        uri: What it asked for.
        message: Why, in full; None: there is none of this URI.
        expired: Whether it could be read once.
    """

    def __init__(self, uri: str, message: str | None = None, *, expired: bool = False) -> None:
        self.uri = uri
        reason = (
            "it has expired: the notebook's kernel keeps only what was made or read last "
            "(MCP_NOTEBOOK_MAX_RESOURCE_BYTES). Call the tool again"
            if expired
            else "there is none of this URI; what was kept before a restart of the kernel is gone. "
            "List the resources, or call the tool again"
        )
        super().__init__(message or f"The resource {uri!r} cannot be read: {reason}.")


class ResourceFailed(CallError):
    """The content of a resource cannot be made, or not be sent."""


class CannotElicit(CallError):
    """A tool's question cannot reach the client's user; the tool may catch this and do without.

    Args:
        message: Why, and what to do.
        undeclared: Whether it is the client that has not declared that it can ask.
    """

    def __init__(self, message: str, *, undeclared: bool = False) -> None:
        self.undeclared = undeclared
        super().__init__(message)


class InvalidAnswer(CallError):
    """What the client's user answered does not fit the question."""


class Cancelled(CallError):
    """The call was stopped before it ended."""


class TimedOut(CallError):
    """The call ran longer than its limit.

    Args:
        tool: Name of the tool.
        seconds: The limit.
        own: Whether the tool's author set it.
    """

    def __init__(self, tool: str, seconds: float, *, own: bool) -> None:
        change = (
            "Its author set the limit, with `timeout=` (`--timeout` on the magic's line)"
            if own
            else "That is the limit of all tools, MCP_NOTEBOOK_CALL_TIMEOUT; a tool of its own has "
            "it with `timeout=`"
        )
        super().__init__(
            f"The tool {tool!r} was stopped: it ran longer than {seconds:g} s. {change}. "
            "Ask for less, or have the limit raised."
        )


class KernelGone(CallError):
    """The kernel of the call is gone: it died, was restarted, or unloaded the extension."""


class LinkError(McpNotebookError):
    """The link between a kernel and a bridge failed."""


class FrameError(LinkError):
    """What came over the link is no frame of this protocol."""


class VersionMismatch(LinkError):
    """The two ends of a link speak different protocol versions.

    Args:
        kernel: Protocol version of the kernel's mcp-notebook.
        bridge: Protocol version of the bridge's mcp-notebook.
    """

    def __init__(self, *, kernel: int, bridge: int) -> None:
        older = "kernel" if kernel < bridge else "bridge"
        step = (
            "in the notebook's environment, then restart the kernel"
            if older == "kernel"
            else "where `mcp-notebook` is started from, then restart it"
        )
        super().__init__(
            f"The kernel's mcp-notebook speaks link version {kernel}, the bridge's {bridge}. "
            f"Upgrade the {older}'s side: `pip install -U mcp-notebook` {step}."
        )


class NotebookError(McpNotebookError):
    """A notebook cannot be run or served without a frontend."""


class BridgeError(McpNotebookError):
    """The user's background bridge cannot be started or stopped."""


class SettingsError(McpNotebookError):
    """An option, environment variable or file of settings has a value that cannot be used."""
