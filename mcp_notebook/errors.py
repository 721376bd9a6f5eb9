"""Every error of the package, in one tree.

::

    McpNotebookError
    ├── DefinitionError        the author's tool cannot be declared (shown in the notebook)
    │   └── NoSuchTool         the notebook has no tool of the name that its author wrote
    ├── NoSuchQuestion         the author answered a consent question that is not open
    ├── ProposalError          the author's decision about a proposed cell cannot be carried out
    ├── CallError              a call failed: the client gets a result with isError
    │   ├── ToolError          raised by an author on purpose, with a text for the model
    │   ├── InvalidArguments   the client's arguments do not fit the tool's input schema
    │   ├── InvalidResult      the tool's return value does not fit its output schema
    │   ├── UnknownTool        no tool has that name (-32602 in the protocol)
    │   ├── OtherKind          a prompt was called like a tool, say (-32602 in the protocol)
    │   ├── ToolGone           a tool had that name until recently
    │   ├── UnknownState       no call is waiting for this answer (-32602 in the protocol)
    │   ├── UnknownResource    no resource has that URI, or it has expired (-32602)
    │   ├── ResourceFailed     a resource's content cannot be made (-32603)
    │   ├── AmbiguousTool      several notebooks have a tool with that name
    │   ├── CannotElicit       the client's user cannot be asked
    │   ├── InvalidAnswer      the user's answer does not fit the question
    │   ├── ConsentDenied      the call was not approved
    │   ├── NotStarted         the kernel that the call needs could not be started
    │   ├── NotConfirmed       the kernel has no approval of the call
    │   ├── Cancelled          the client or the user stopped the call
    │   ├── TimedOut           the call exceeded its time limit
    │   └── KernelGone         the kernel died, restarted or unloaded the extension
    ├── LinkError              the link between kernel and bridge failed
    │   ├── FrameError         the bytes are not a frame of the link's protocol
    │   │   └── FrameTooLarge  a message exceeds the size of a frame
    │   └── VersionMismatch    the two sides speak different versions of the protocol
    ├── NotebookError          a headless notebook cannot be served
    │   ├── KernelDied         its kernel died while starting
    │   ├── NoRoom             the machine has no room for its kernel now
    │   ├── OffersNothing      its cells have run, and declare nothing
    │   └── UntrustedNotebook  it is not trusted, and only trusted notebooks may run
    ├── MissingLibrary         a feature needs a library that is not installed
    ├── BridgeError            the background bridge cannot be started or stopped
    ├── CheckFailed            `%mcp check` could not check the tools
    ├── ClientError            a client's settings cannot be read or changed
    ├── SkillError             skills cannot be written to a folder
    ├── TokenError             a token cannot be added or changed, or its file cannot be used
    ├── RemoteError            `mcp-notebook connect` cannot use a remote server
    │   ├── Unreachable        a request did not reach the server; a later one may
    │   │   └── Unavailable    a proxy answered in the server's place
    │   ├── ConnectionLost     the connection ended before the answer
    │   ├── ServerStopped      a JupyterHub has stopped the server; it can be started again
    │   │   └── LaunchEnded    the Binder's server has ended; another can be launched
    │   ├── NotebookNotOpen    the Jupyter server has no such notebook open
    │   └── SessionLost        the server does not know the client's session
    ├── IssuerUnreachable      the issuer of access tokens does not answer
    └── SettingsError          an option, variable or file has an invalid value

Each message names the thing, the cause and the next step. Used in every process.
"""

from typing import Literal

from mcp_notebook.text.wording import suggest


class McpNotebookError(Exception):
    """Base class of all errors that this package raises deliberately."""


class DefinitionError(McpNotebookError):
    """A tool cannot be declared as written. The message is for its author."""

    def _render_traceback_(self) -> list[str]:
        # IPython calls this. The message says everything, so no traceback is shown.
        return [f"{type(self).__name__}: {self}"]


class NoSuchTool(DefinitionError, KeyError):
    """The notebook has no tool of the name that its author wrote.

    Args:
        name: The name.
        names: The names that are possible, for a suggestion.
        kind: What the name is that of, if not of a tool: "prompt", "resource" or "skill".
        is_any: Whether a name of a prompt, resource or skill would have been right as well.
    """

    def __init__(
        self,
        name: object,
        names: tuple[str, ...] = (),
        *,
        kind: str | None = None,
        is_any: bool = False,
    ) -> None:
        close = suggest(str(name), names)
        hint = f"did you mean {close!r}?" if close else ""
        if is_any:
            listed = f"it declares {', '.join(names) or 'nothing'}."
            message = f"This notebook declares nothing called {name!r}; {hint or listed}"
        elif kind is not None:
            message = f"{name!r} is a {kind}, not a tool: change it in its cell."
        else:
            listed = f"tools: {', '.join(names) or 'none'}."
            message = f"This notebook has no tool {name!r}; {hint or listed}"
        super().__init__(message)

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would put it in quotes


class NoSuchQuestion(McpNotebookError):
    """The author answered a consent question that is not open.

    Args:
        number: The number of the question.
        open_numbers: The numbers of the open questions.
    """

    def __init__(self, number: int, open_numbers: tuple[int, ...]) -> None:
        open_ones = ", ".join(map(str, open_numbers)) or "none"
        super().__init__(
            f"Question {number} is not open: it was answered, it timed out, or its call was "
            f"withdrawn. Open questions: {open_ones}."
        )


class ProposalError(McpNotebookError):
    """A person's decision about a proposed cell cannot be carried out; she is told why."""


class CallError(McpNotebookError):
    """A call failed. The message is for the model and its user."""


class ToolError(CallError):
    """Raise this in a tool to fail with exactly this message and no traceback."""


class CopyEnded(ToolError):
    """The copy of the kernel in which a call ran ended before its function did.

    Args:
        tool: The name of the tool.
        end: How it ended, as the end of a sentence: "ended with exit status 3".
    """

    ENDING = "The kernel itself is not affected."
    """What the messages end with."""

    def __init__(self, tool: str, end: str) -> None:
        super().__init__(f"The copy of the kernel that ran {tool!r} {end}. {self.ENDING}")


class InvalidArguments(CallError):
    """The arguments of a call do not fit the tool's input schema."""


class InvalidResult(CallError):
    """A tool's return value does not fit its output schema, or cannot be sent as data."""


class UnknownTool(CallError):
    """The client called a tool that no open notebook has.

    Args:
        name: The name in the client's request.
        names: The names of the tools, the most similar ones first.
        kind: "tool", or "prompt" or "resource" if the client requested one.
    """

    def __init__(self, name: str, names: tuple[str, ...] = (), kind: str = "tool") -> None:
        self.name = name
        self.names = names
        self.kind = kind
        first = names[:20]
        close = suggest(name, first)
        meant = f"Did you mean {close!r}? " if close else ""
        all_ = ", ".join(first) + (", ..." if len(names) > len(first) else "")
        none = f"No open notebook offers a {kind} now."
        if kind == "notebook":
            none = "No notebook has to run before its tools can be called: list the tools again."
        hint = f"{meant}The {kind}s are: {all_}." if names else none
        super().__init__(f"Unknown {kind}: {name!r}. {hint}")


class OtherKind(CallError):
    """The client requested a declaration as another kind than it is.

    Args:
        name: The name in the client's request.
        kind: What it is: "tool", "prompt", "resource", or "notebook" for one that has to run.
        requested: As what the client requested it.
    """

    def __init__(
        self,
        name: str,
        kind: Literal["tool", "prompt", "resource", "notebook"],
        requested: str,
    ) -> None:
        self.name = name
        self.kind = kind
        self.requested = requested
        how = {
            "tool": "call it with `tools/call`",
            "prompt": "a program gets it with `prompts/get`, and the user picks it in the client, "
            "often as a command that begins with a slash",
            "resource": "read it with `resources/read`",
            "notebook": "run it with the tool `run_notebook`, and its tools are listed",
        }
        super().__init__(f"{name!r} is a {kind}, not a {requested}: {how[kind]}.")


class ToolGone(CallError):
    """The client called a tool that existed until recently.

    Args:
        name: The name in the client's request.
        explanation: What became of it and how to bring it back, as sentences.
        notebook: The notebook that had the tool; None if unknown.
        kind: As for `UnknownTool`.
    """

    def __init__(
        self, name: str, explanation: str, *, notebook: str | None = None, kind: str = "tool"
    ) -> None:
        self.name = name
        has_owner = notebook is not None and kind != "notebook"
        where = f" of the notebook {notebook!r}" if has_owner else ""
        super().__init__(f"The {kind} {name!r}{where} is gone. {explanation}")


class AmbiguousTool(CallError):
    """The client called a tool name that several open notebooks have.

    Args:
        name: The name without a notebook.
        candidates: The names to call instead.
        kind: As for `UnknownTool`.
    """

    def __init__(self, name: str, candidates: tuple[str, ...], kind: str = "tool") -> None:
        self.name = name
        self.candidates = candidates
        super().__init__(
            f"Several open notebooks have a {kind} {name!r}, so this call did not run. "
            f"Call {' or '.join(map(repr, candidates))} instead. If your list of {kind}s does not "
            "include these, refresh it, or ask the user to close one of the notebooks."
        )


class UnknownState(CallError):
    """The client answered a call that is not waiting for an answer."""

    def __init__(self) -> None:
        super().__init__(
            "Invalid or expired requestState: no call of this tool with these arguments is waiting "
            "for it. Call the tool again without the state."
        )


class UnknownResource(CallError):
    """The client requested a resource that does not exist or has expired.

    Args:
        uri: The URI in the client's request.
        message: The whole message; None for the default.
        expired: Whether the resource has expired.
    """

    def __init__(self, uri: str, message: str | None = None, *, expired: bool = False) -> None:
        self.uri = uri
        if not uri.startswith("notebook://"):
            reason = (
                "its address does not begin with notebook://. Copy the whole address from the "
                "shortened result"
            )
        elif expired:
            reason = (
                "it has expired, because the notebook's kernel keeps only recent resources (limit "
                "max_resource_bytes). Call the tool again"
            )
        else:
            reason = (
                "it does not exist. Resources are lost when the kernel restarts. Check the "
                "address, "
                "or call the tool again"
            )
        super().__init__(message or f"The resource {uri!r} cannot be read: {reason}.")


class ResourceFailed(CallError):
    """The content of a resource cannot be created or sent."""


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
    """A person declined the call, did not answer, or could not be asked."""


class NotStarted(CallError):
    """The kernel that a call needs could not be started.

    Args:
        text: What the caller gets of the reason.
        details: The whole reason, for the owner's log.
    """

    def __init__(self, text: str, details: str) -> None:
        super().__init__(text)
        self.details = details


class NotConfirmed(CallError):
    """The kernel refuses a call without approval, of a tool that requires it.

    Args:
        tool: Name of the tool.
        was_asked: Whether a person approved the call before the tool changed.
    """

    def __init__(self, tool: str, *, was_asked: bool) -> None:
        super().__init__(
            f"The tool {tool!r} was changed after a person had approved this call, so it did not "
            "run. Call it again."
            if was_asked
            else f"The tool {tool!r} requires a person's approval, but nobody was asked, "
            f"because the "
            "client's mcp-notebook is older than the notebook's. Upgrade it in the environment "
            "that starts `mcp-notebook` (`pip install -U mcp-notebook`), and connect again."
        )


class Cancelled(CallError):
    """The call was stopped before it ended."""


class TimedOut(CallError):
    """The call ran longer than its limit.

    Args:
        tool: Name of the tool.
        seconds: The limit.
        is_own: Whether the tool's author set the limit.
        is_set: Whether the limit was set at all, or is a default.
        kind: As for `UnknownTool`.
    """

    def __init__(
        self, tool: str, seconds: float, *, is_own: bool, is_set: bool = True, kind: str = "tool"
    ) -> None:
        change = "Its author set the limit with `timeout=` (`--timeout` in a cell)"
        if not is_own:
            limit = (
                "the limit for all calls, MCP_NOTEBOOK_CALL_TIMEOUT"
                if is_set
                else "the limit for tools with `run='fork'`"
            )
            change = f"This is {limit}. A {kind} can set its own with `timeout=`"
        super().__init__(
            f"The {kind} {tool!r} was stopped: it ran longer than {seconds:g} s. {change}. "
            "Ask for less, or have the limit raised."
        )


class KernelGone(CallError):
    """The call's kernel is gone: it died, was restarted, or unloaded the extension."""


class LinkError(McpNotebookError):
    """The link between a kernel and a bridge failed."""


class FrameError(LinkError):
    """The bytes on a link are not a frame of its protocol."""


class FrameTooLarge(FrameError):
    """A message is too large, not counting its attachments.

    Args:
        kind: The type of the message.
        size: Its size in bytes.
        most: The maximum size in bytes.
    """

    def __init__(self, kind: str, size: int, most: int) -> None:
        self.size, self.most = size, most
        super().__init__(
            f"A {kind!r} message has {size} bytes without its attachments, but at most {most} are "
            "allowed."
        )


class VersionMismatch(LinkError):
    """The two ends of a link speak different protocol versions.

    Args:
        kernel: Protocol version of the kernel's mcp-notebook.
        bridge: Protocol version of the bridge's mcp-notebook.
    """

    def __init__(self, *, kernel: int, bridge: int) -> None:
        self.kernel = kernel
        self.bridge = bridge
        older = "kernel" if kernel < bridge else "bridge"
        step = (
            "in the notebook's environment, then restart the kernel"
            if older == "kernel"
            else "in the environment that starts `mcp-notebook`, then restart it"
        )
        super().__init__(
            f"The kernel's mcp-notebook speaks version {kernel} of the link's protocol, but the "
            f"bridge's speaks version {bridge}. Upgrade mcp-notebook on the {older}'s side: "
            f"`pip install -U mcp-notebook` {step}."
        )


class NotebookError(McpNotebookError):
    """A headless notebook cannot be run or served."""


class KernelDied(NotebookError):
    """The kernel of a notebook died while starting. A retry may succeed."""


class NoRoom(NotebookError):
    """The machine has no room for a notebook's kernel now. The message begins as a clause."""


class CodeChanged(NotebookError):
    """A notebook was saved after a person had agreed to run it. The message begins as a clause."""


class OffersNothing(NotebookError):
    """All cells of a notebook have run, and it declares nothing that can be served."""


class UntrustedNotebook(NotebookError):
    """A notebook is not run because it is not trusted.

    Args:
        message: For the person who started the command.
        notebook: Name of the notebook, for clients.
    """

    def __init__(self, message: str, *, notebook: str) -> None:
        self.notebook = notebook
        super().__init__(message)


class MissingLibrary(McpNotebookError):
    """A feature needs a library of an extra that is not installed.

    Args:
        purpose: What needs the library, as the beginning of a sentence.
        library: The name of the library.
        extra: The extra of mcp-notebook that installs it.
    """

    def __init__(self, purpose: str, library: str, extra: str) -> None:
        super().__init__(
            f"{purpose} the library {library}, which is not installed in the environment of "
            f"mcp-notebook. Install the extra {extra!r} of mcp-notebook there (in a copy of its "
            f"repository, `pip install -e '.[{extra}]'`), then start it again."
        )


class BridgeError(McpNotebookError):
    """The user's background bridge cannot be started or stopped."""


class CheckFailed(McpNotebookError):
    """The tools of a live notebook could not be checked."""


class SkillError(McpNotebookError):
    """The skills of notebooks cannot be written to a folder."""


class ClientError(McpNotebookError):
    """The settings of a client cannot be read or changed."""


class TokenError(McpNotebookError):
    """A token cannot be added, removed or rotated, or the file of tokens cannot be used."""


class RemoteError(McpNotebookError):
    """A remote server cannot be used."""


class Unreachable(RemoteError):
    """A request did not reach the remote server. It may succeed later."""


class Unavailable(Unreachable):
    """A proxy does not reach the remote server, which may be starting or have died."""


class ConnectionLost(RemoteError):
    """The connection to the remote server ended before the answer. The request may have run."""


class ServerStopped(RemoteError):
    """The JupyterHub's server does not run. It can be started; no request has reached it."""


class NotebookNotOpen(RemoteError):
    """The Jupyter server has no open notebook of this name with tools."""


class LaunchEnded(ServerStopped):
    """The server that a Binder launched has ended. Another one can be launched."""


class SessionLost(RemoteError):
    """The remote server does not know the client's session. It may have restarted or expired it."""


class SettingsError(McpNotebookError):
    """An option, an environment variable or a file has an invalid value."""


class NoHomeFolder(SettingsError):
    """The user has no home folder: HOME is not set, and the system does not know the user."""

    def __init__(self) -> None:
        super().__init__(
            "Your user has no home folder, which Jupyter and mcp-notebook need. Set HOME to a "
            "folder that you can write to."
        )


class IssuerUnreachable(McpNotebookError):
    """The issuer of access tokens cannot be reached.

    Args:
        issuer: The issuer's address.
        reason: The cause.
    """

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(f"the issuer of access tokens, {issuer}, cannot be reached: {reason}")
