"""Every error of the package, in one tree.

::

    McpNotebookError
    ├── DefinitionError        the author's tool cannot be declared (shown in the notebook)
    │   └── NoSuchTool         the author named a tool that the notebook does not have
    ├── NoSuchQuestion         the author answered a question about consent that is not open
    ├── CallError              a call failed: the client gets it as a result with isError
    │   ├── ToolError          raised by an author on purpose: its text is for the model
    │   ├── InvalidArguments   the client's arguments do not fit the tool's input schema
    │   ├── InvalidResult      the tool's return value does not fit its output schema
    │   ├── UnknownTool        no tool has that name (-32602 in the protocol)
    │   ├── ToolGone           a tool had that name some minutes ago
    │   ├── UnknownState       no call waits for this answer (-32602 in the protocol)
    │   ├── UnknownResource    no resource has that URI, or it has expired (-32602)
    │   ├── ResourceFailed     a resource's content cannot be made (-32603)
    │   ├── AmbiguousTool      several notebooks have a tool of that name
    │   ├── CannotElicit       the client's user cannot be asked
    │   ├── InvalidAnswer      the user's answer does not fit the question
    │   ├── ConsentDenied      a person had to agree to the call and did not
    │   ├── NotConfirmed       the kernel does not know that a person has agreed to the call
    │   ├── Cancelled          the client or the user stopped the call
    │   ├── TimedOut           its time limit stopped the call
    │   └── KernelGone         the kernel died, restarted or unloaded the extension
    ├── LinkError              the link between kernel and bridge failed
    │   ├── FrameError         the bytes are not a frame of the link's protocol
    │   │   └── FrameTooLarge  a message has more bytes than a frame may
    │   └── VersionMismatch    the two sides speak different versions of the link
    ├── NotebookError          a headless notebook cannot be served
    │   └── UntrustedNotebook  it is not trusted, and only trusted ones may be run
    ├── MissingLibrary         what was asked for needs a library that is not installed
    ├── BridgeError            the background bridge cannot be started or stopped
    ├── ClientError            a client's settings cannot be read or changed
    ├── TokenError             a token cannot be added or changed, or its file cannot be used
    ├── RemoteError            `mcp-notebook connect` cannot use a remote server as it is
    │   ├── Unreachable        a request did not reach it; a later one may
    │   ├── ConnectionLost     the connection ended before the answer
    │   └── SessionLost        it does not know the client's session (any more)
    └── SettingsError          an option or environment variable has an invalid value

Each message names the thing, the cause and the next step. In every process.
"""

from mcp_notebook.text.wording import suggest


class McpNotebookError(Exception):
    """Base class of all errors that this package raises deliberately."""


class DefinitionError(McpNotebookError):
    """A tool cannot be declared as written. The message is for its author."""

    def _render_traceback_(self) -> list[str]:
        # IPython calls this. The message says everything; our frames would add nothing.
        return [f"{type(self).__name__}: {self}"]


class NoSuchTool(DefinitionError, KeyError):
    """The notebook has no tool of the name that its author wrote.

    Args:
        name: The name.
        names: The names of its tools, for a suggestion.
    """

    def __init__(self, name: object, names: tuple[str, ...] = ()) -> None:
        close = suggest(str(name), names)
        hint = f"did you mean {close!r}?" if close else f"tools: {', '.join(names) or 'none'}."
        super().__init__(f"This notebook has no tool {name!r}; {hint}")

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would put it in quotes


class NoSuchQuestion(McpNotebookError):
    """Somebody answered a question about consent that is not open.

    Args:
        number: Of the question.
        open_numbers: Those of the questions that are open.
    """

    def __init__(self, number: int, open_numbers: tuple[int, ...]) -> None:
        open_ones = ", ".join(map(str, open_numbers)) or "none"
        super().__init__(
            f"Question {number} is not open: it was answered, nobody answered it in time, or its "
            f"call was withdrawn. Open questions: {open_ones}."
        )


class CallError(McpNotebookError):
    """A call failed. The message is for the model and its user."""


class ToolError(CallError):
    """Raise this in a tool to fail with exactly this message, without a traceback."""


class InvalidArguments(CallError):
    """The arguments of a call do not fit the tool's input schema."""


class InvalidResult(CallError):
    """A tool's return value does not fit its output schema, or cannot be sent as data."""


class UnknownTool(CallError):
    """The client called a tool that no open notebook has.

    Args:
        name: The name in the client's request.
        names: The names of the tools, the most similar ones first.
    """

    def __init__(self, name: str, names: tuple[str, ...] = ()) -> None:
        self.name = name
        self.names = names
        shortened = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")  # noqa: PLR2004
        hint = f"The tools are: {shortened}." if names else "No open notebook offers a tool now."
        super().__init__(f"Unknown tool: {name!r}. {hint}")


class ToolGone(CallError):
    """The client called a tool that was there some minutes ago.

    Args:
        name: The name in the client's request.
        explanation: What became of it and what brings it back, as sentences.
        notebook: The notebook that had the tool, if it is known.
    """

    def __init__(self, name: str, explanation: str, *, notebook: str | None = None) -> None:
        self.name = name
        where = "" if notebook is None else f" of the notebook {notebook!r}"
        super().__init__(f"The tool {name!r}{where} is gone. {explanation}")


class AmbiguousTool(CallError):
    """The client called a bare name that several open notebooks offer.

    Args:
        name: The bare name.
        candidates: The names to call instead.
    """

    def __init__(self, name: str, candidates: tuple[str, ...]) -> None:
        self.name = name
        self.candidates = candidates
        super().__init__(
            f"Several open notebooks have a tool {name!r}, so this call did not run. "
            f"Call {' or '.join(map(repr, candidates))} instead. If your tools do not include "
            "these, list them again, or ask the user to close one of the notebooks."
        )


class UnknownState(CallError):
    """The client continues a call that is not waiting for it."""

    def __init__(self) -> None:
        super().__init__(
            "Invalid or expired requestState: no call of this tool with these arguments waits for "
            "it. Call the tool again, without the state."
        )


class UnknownResource(CallError):
    """The client asked for a resource that does not exist, or no longer.

    Args:
        uri: The URI in the client's request.
        message: The whole message; None for the standard one.
        expired: Whether the resource existed.
    """

    def __init__(self, uri: str, message: str | None = None, *, expired: bool = False) -> None:
        self.uri = uri
        if not uri.startswith("notebook://"):
            reason = (
                "the address of a result begins with notebook://. Copy it whole from the result "
                "that was shortened"
            )
        elif expired:
            reason = (
                "it has expired, because the notebook's kernel keeps only the most recent ones "
                "(the limit max_resource_bytes). Call the tool again"
            )
        else:
            reason = (
                "it does not exist. Resources are lost when the kernel restarts. Check the "
                "address, or call the tool again"
            )
        super().__init__(message or f"The resource {uri!r} cannot be read: {reason}.")


class ResourceFailed(CallError):
    """The content of a resource cannot be made or sent."""


class CannotElicit(CallError):
    """The client's user cannot be asked. A tool may catch this and continue without an answer.

    Args:
        message: The cause and the next step.
        undeclared: Whether the cause is that the client has not declared elicitation.
    """

    def __init__(self, message: str, *, undeclared: bool = False) -> None:
        self.undeclared = undeclared
        super().__init__(message)


class InvalidAnswer(CallError):
    """The user's answer does not fit the question."""


class ConsentDenied(CallError):
    """A person had to agree to the call, and said no, did not answer, or could not be asked."""


class NotConfirmed(CallError):
    """The kernel refuses a call that nobody has agreed to, of a tool that asks before each call.

    Args:
        tool: Name of the tool.
        was_asked: Whether a person was asked, but about the tool as it was before a change.
    """

    def __init__(self, tool: str, *, was_asked: bool) -> None:
        super().__init__(
            f"The tool {tool!r} was changed after a person had agreed to this call, so it did not "
            "run. Call it again."
            if was_asked
            else f"The tool {tool!r} runs only after a person has agreed, and nobody was asked: "
            "the client's mcp-notebook is older than the notebook's. Upgrade it "
            "where `mcp-notebook` is started from (`pip install -U mcp-notebook`), and connect "
            "again."
        )


class Cancelled(CallError):
    """The call was stopped before it ended."""


class TimedOut(CallError):
    """The call ran longer than its limit.

    Args:
        tool: Name of the tool.
        seconds: The limit.
        is_own: Whether the tool's author set it.
        is_set: Whether anybody set it.
    """

    def __init__(self, tool: str, seconds: float, *, is_own: bool, is_set: bool = True) -> None:
        change = "Its author set the limit with `timeout=` (`--timeout` in a cell)"
        if not is_own:
            limit = (
                "the limit for all tools, MCP_NOTEBOOK_CALL_TIMEOUT"
                if is_set
                else "the limit for tools with `run='fork'`"
            )
            change = f"That is {limit}. A tool can set its own with `timeout=`"
        super().__init__(
            f"The tool {tool!r} was stopped: it ran longer than {seconds:g} s. {change}. "
            "Ask for less, or have the limit raised."
        )


class KernelGone(CallError):
    """The call's kernel is gone: it died, was restarted, or unloaded the extension."""


class LinkError(McpNotebookError):
    """The link between a kernel and a bridge failed."""


class FrameError(LinkError):
    """The bytes on a link are not a frame of its protocol."""


class FrameTooLarge(FrameError):
    """A message has too many bytes, apart from its attachments.

    Args:
        kind: What the message is.
        size: Its bytes.
        most: The bytes that it may have.
    """

    def __init__(self, kind: str, size: int, most: int) -> None:
        self.size, self.most = size, most
        super().__init__(
            f"A {kind!r} message has {size} bytes without its attachments; at most {most} are "
            "allowed."
        )


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
            f"The kernel's mcp-notebook speaks version {kernel} of the link's protocol, the "
            f"bridge's version {bridge}. Upgrade mcp-notebook on the {older}'s side: "
            f"`pip install -U mcp-notebook` {step}."
        )


class NotebookError(McpNotebookError):
    """A notebook cannot be run without a frontend, or cannot be served."""


class KernelDied(NotebookError):
    """The kernel of a notebook ended while it started: another one may not."""


class RecordingError(McpNotebookError):
    """Calls cannot be recorded in a file, or the calls of a file cannot be made again."""


class UntrustedNotebook(NotebookError):
    """A notebook is not run because it is not trusted.

    Args:
        message: For whoever started the command.
        notebook: Name of the notebook, for clients.
    """

    def __init__(self, message: str, *, notebook: str) -> None:
        self.notebook = notebook
        super().__init__(message)


class MissingLibrary(McpNotebookError):
    """Something needs a library of an extra that is not installed.

    Args:
        purpose: What needs it, as the beginning of a sentence.
        library: Its name.
        extra: The extra of mcp-notebook that brings it.
    """

    def __init__(self, purpose: str, library: str, extra: str) -> None:
        super().__init__(
            f"{purpose} the library {library}, which is not installed beside mcp-notebook. "
            f"Run `pip install 'mcp-notebook[{extra}]'` there, and start it again."
        )


class BridgeError(McpNotebookError):
    """The user's background bridge cannot be started or stopped."""


class ClientError(McpNotebookError):
    """The settings of a client cannot be read or changed as they should be."""


class TokenError(McpNotebookError):
    """A token cannot be added, removed or rotated, or the file of tokens cannot be used."""


class RemoteError(McpNotebookError):
    """A remote server cannot be used as it is."""


class Unreachable(RemoteError):
    """A request did not reach the remote server. The same request may succeed later."""


class ConnectionLost(RemoteError):
    """The connection to the remote server ended before the answer: the request may have run."""


class LaunchEnded(RemoteError):
    """The server that a Binder started has ended; another one can be started."""


class SessionLost(RemoteError):
    """The remote server does not know the client's session: it was restarted, or it expired."""


class SettingsError(McpNotebookError):
    """An option, an environment variable or a file has a value that cannot be used."""


class IssuerUnreachable(McpNotebookError):
    """Whoever issues access tokens cannot be asked about them.

    Args:
        issuer: Its address.
        reason: What went wrong.
    """

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(f"the issuer of access tokens, {issuer}, cannot be asked: {reason}")
