"""The pages for monitoring: whether the bridge is up, and its metrics.

Runs on the bridge's event loop. ``/healthz`` is in front of the gate: anyone can learn that the
bridge is up, and nothing else. ``/metrics`` is behind the gate, for the owner, for metrics tokens,
and for callers that may call every tool, because the metrics name all tools.
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
    """Wrap an application in middleware that answers ``/healthz``."""

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] == HEALTH_PATH
            and scope["method"] in _METHODS  # the gate handles other methods
        ):
            headers = {"Cache-Control": "no-store"}
            await PlainTextResponse("ok", headers=headers)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app


def answer_metrics(app: ASGIApp, metrics: Metrics, refusals: RefusalLog) -> ASGIApp:
    """Wrap an application in middleware that answers ``/metrics``.

    Args:
        app: The wrapped application.
        metrics: The metrics.
        refusals: Logs callers that may not see them.
    """

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == METRICS_PATH:
            await (await _make_page(scope, metrics, refusals))(scope, receive, send)
        elif scope[SCOPE_KEY].permissions.is_nothing:
            refusals.note(scope.get("client"), "its token is for the metrics only")
            await _refuse(403, "This token is for the metrics only.")(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app


async def _make_page(scope: Scope, metrics: Metrics, refusals: RefusalLog) -> Response:
    caller: Caller = scope[SCOPE_KEY]
    if not (caller.may_read_metrics or caller.permissions.is_everything):
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
