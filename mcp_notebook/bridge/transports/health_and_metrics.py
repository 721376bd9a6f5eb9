"""What programs that watch the bridge ask: whether it is up, and its numbers.

Runs on the bridge's event loop. ``/healthz`` is answered before the gate, to everybody, and says
nothing but that the bridge is up. ``/metrics`` is behind the gate, and for the owner, tokens made
for it, and callers that may call every tool: the numbers name them all.
"""

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_notebook.bridge.access.caller import SCOPE_KEY, Caller
from mcp_notebook.bridge.access.refusals import RefusalLog
from mcp_notebook.bridge.telemetry.metrics import Metrics
from mcp_notebook.bridge.telemetry.prometheus_page import load_library, render
from mcp_notebook.errors import MissingLibrary

HEALTH_PATH = "/healthz"
METRICS_PATH = "/metrics"
_METHODS = ("GET", "HEAD")
_MAKE_TOKEN = "Its owner makes one with `mcp-notebook token add NAME --metrics`."  # noqa: S105


def answer_health(app: ASGIApp) -> ASGIApp:
    """Answer whether the bridge is up; everything else goes to the application."""

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] == HEALTH_PATH
            and scope["method"] in _METHODS  # everything else is the gate's
        ):
            headers = {"Cache-Control": "no-store"}
            await PlainTextResponse("ok", headers=headers)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app


def answer_metrics(app: ASGIApp, metrics: Metrics, refusals: RefusalLog) -> ASGIApp:
    """Answer with the numbers; everything else goes to the application.

    Args:
        app: The application behind it.
        metrics: The numbers.
        refusals: Gets a line about each caller that may not see them.
    """

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == METRICS_PATH:
            await (await _make_page(scope, metrics, refusals))(scope, receive, send)
        elif scope[SCOPE_KEY].permissions.is_nothing():
            refusals.note(scope.get("client"), "its token is for the metrics alone")
            await _refuse(403, "This token is for the metrics alone.")(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app


async def _make_page(scope: Scope, metrics: Metrics, refusals: RefusalLog) -> Response:
    caller: Caller = scope[SCOPE_KEY]
    if not (caller.may_read_metrics or caller.permissions.is_everything()):
        refusals.note(scope.get("client"), "its token is not for the metrics")
        return _refuse(403, f"This token is not for the metrics. {_MAKE_TOKEN}")
    if scope["method"] not in _METHODS:
        return _refuse(405, f"{METRICS_PATH} can only be read (GET).", Allow=", ".join(_METHODS))
    try:
        await anyio.to_thread.run_sync(load_library)
    except MissingLibrary as error:
        return _refuse(501, str(error))
    page, content_type = render(metrics, Headers(scope=scope).get("accept", ""))
    headers = {"Content-Type": content_type, "Cache-Control": "no-store"}
    return Response(page, headers=headers)


def _refuse(status: int, message: str, **headers: str) -> Response:
    return JSONResponse({"error": message}, status_code=status, headers=headers)
