"""The page that says whether the bridge is up.

Runs on the bridge's event loop. ``/healthz`` is in front of the gate: anyone can learn that the
bridge is up, and nothing else.
"""

from mcp_notebook.bridge.asgi import ASGIApp, Receive, Scope, Send, make_text_response

HEALTH_PATH = "/healthz"
_METHODS = ("GET", "HEAD")


def answer_health(app: ASGIApp) -> ASGIApp:
    """Wrap an application in middleware that answers ``/healthz``."""

    async def answered_app(scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] == HEALTH_PATH
            and scope["method"] in _METHODS  # the gate handles other methods
        ):
            headers = {"Cache-Control": "no-store"}
            await make_text_response("ok", headers=headers)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered_app
