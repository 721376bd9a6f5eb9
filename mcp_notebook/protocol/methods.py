"""The requests and notifications of clients: which version has them, and their parameters.

Pure. `METHODS` is the table of requests. Parameters are checked before anything is looked up, so
the error for a malformed request reveals nothing. Unknown members are ignored, as MCP requires. The
schema:
https://modelcontextprotocol.io/specification/2026-07-28/schema
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field, structs

from mcp_notebook.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError
from mcp_notebook.protocol.messages import MAX_ID, is_id
from mcp_notebook.protocol.versions import (
    HANDSHAKE_VERSIONS,
    LATEST_HANDSHAKE,
    VERSIONS,
)

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
INITIALIZE, PING, DISCOVER, LISTEN = (
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
)
CALL, LIST_TOOLS = "tools/call", "tools/list"
INITIALIZED, CANCELLED = "notifications/initialized", "notifications/cancelled"


class Parameters(Struct, frozen=True, rename="camel"):
    """The parameters of a request."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListParameters(Parameters, frozen=True):
    """Parameters of a request for a page of a list."""

    cursor: str | None = None
    """From the previous page; None for the first page."""


class _Answered(Parameters, frozen=True):
    """Parameters of a request that may be repeated with answers of the user (2026-07-28)."""

    input_responses: dict[str, Any] | None = None
    request_state: str | None = None


class CallParameters(_Answered, frozen=True, kw_only=True):
    """Parameters of ``tools/call``."""

    name: str
    arguments: dict[str, Any] | None = None


class PromptParameters(_Answered, frozen=True, kw_only=True):
    """Parameters of ``prompts/get``."""

    name: str
    arguments: dict[str, str] | None = None


class ReadParameters(_Answered, frozen=True, kw_only=True):
    """Parameters of ``resources/read``."""

    uri: str


class UriParameters(ListParameters, frozen=True, kw_only=True):
    """Parameters of a request about one URI."""

    uri: str


class PromptReference(Struct, frozen=True, tag_field="type", tag="ref/prompt"):
    """The prompt whose argument is completed."""

    name: str


class TemplateReference(Struct, frozen=True, tag_field="type", tag="ref/resource"):
    """The resource template whose variable is completed."""

    uri: str


class Argument(Struct, frozen=True):
    """What a user has typed."""

    name: str
    value: str


class CompletionContext(Struct, frozen=True):
    """The arguments that already have values."""

    arguments: dict[str, str] | None = None


class CompleteParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of ``completion/complete``."""

    ref: PromptReference | TemplateReference
    argument: Argument
    context: CompletionContext | None = None


class LevelParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of ``logging/setLevel``."""

    level: LogLevel


class InitializeParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of ``initialize``."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any]


class Subscriptions(Struct, frozen=True, rename="camel"):
    """The changes that a stream reports."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class ListenParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of ``subscriptions/listen``."""

    notifications: Subscriptions


class TaskParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str


class UpdateParameters(TaskParameters, frozen=True, kw_only=True):
    """Parameters of ``tasks/update``."""

    input_responses: dict[str, Any]


class Method(Struct, frozen=True):
    """A kind of request."""

    parameters: type[Parameters]
    since: str = VERSIONS[0]
    """The first version that has it."""
    until: str = VERSIONS[-1]
    """The last one."""


METHODS: Mapping[str, Method] = {
    INITIALIZE: Method(InitializeParameters, until=LATEST_HANDSHAKE),
    PING: Method(Parameters, until=LATEST_HANDSHAKE),
    DISCOVER: Method(Parameters, since="2026-07-28"),
    LIST_TOOLS: Method(ListParameters),
    CALL: Method(CallParameters),
    "prompts/list": Method(ListParameters),
    "prompts/get": Method(PromptParameters),
    "resources/list": Method(ListParameters),
    "resources/templates/list": Method(ListParameters),
    "resources/read": Method(ReadParameters),
    "resources/subscribe": Method(UriParameters, until=LATEST_HANDSHAKE),
    "resources/unsubscribe": Method(UriParameters, until=LATEST_HANDSHAKE),
    "completion/complete": Method(CompleteParameters),
    "logging/setLevel": Method(LevelParameters, until=LATEST_HANDSHAKE),
    LISTEN: Method(ListenParameters, since="2026-07-28"),
    # https://github.com/modelcontextprotocol/ext-tasks
    "tasks/get": Method(TaskParameters, since="2026-07-28"),
    "tasks/update": Method(UpdateParameters, since="2026-07-28"),
    "tasks/cancel": Method(TaskParameters, since="2026-07-28"),
    # https://github.com/modelcontextprotocol/ext-skills
    "skills/list": Method(ListParameters),
    "skills/get": Method(UriParameters),
    "resources/directory/read": Method(UriParameters),
}
"""The requests that a client may send, by method."""


def read_parameters(method: str, version: str, params: Mapping[str, Any] | None) -> Parameters:
    """Return the parameters of a request.

    Args:
        method: Its method.
        version: The version of MCP that it is in.
        params: As the client sent them.

    Raises:
        ProtocolError: The version has no such method, or the parameters are invalid.
    """
    known = METHODS.get(method)
    if known is None or not known.since <= version <= known.until:  # dates
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)
    try:
        parameters = msgspec.convert({} if params is None else params, known.parameters)
    except msgspec.ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {error}.") from None
    if version in HANDSHAKE_VERSIONS and isinstance(parameters, _Answered):
        parameters = structs.replace(parameters, input_responses=None, request_state=None)
    token = (parameters.meta or {}).get("progressToken")
    if token is not None and not is_id(token):
        message = (
            "Invalid request parameters: `progressToken` must be a string of at most "
            f"{MAX_ID:,} characters, or an integer."
        )
        raise ProtocolError(INVALID_PARAMS, message)
    return parameters
