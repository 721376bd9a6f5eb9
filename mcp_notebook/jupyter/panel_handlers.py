"""``/mcp-notebook/api/...``: the routes of the side panel.

Runs on the event loop of Jupyter Server. Each page has one WebSocket for changes; actions are POST
requests. Both need the page's cookie and the XSRF token that only pages of this server can read;
the WebSocket also needs an Origin that Jupyter Server allows, and ends with the login.
"""

import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, TypeAlias, Union, cast

import msgspec
from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from msgspec import Struct, structs
from tornado.ioloop import PeriodicCallback
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from mcp_notebook.bridge.kernels.kernel_requests import PanelRequest
from mcp_notebook.discovery.own_requirement import find_plain_requirement
from mcp_notebook.errors import LinkError
from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.jupyter.notebook_links import Event, NotebookLinks
from mcp_notebook.wire import messages

LINKS_KEY = "mcp_notebook_links"
"""The key of the `NotebookLinks` in the settings of the server's application."""
_PAGES_KEY = "mcp_notebook_pages"
"""The key of the open WebSockets in the same settings."""
LOGIN_INTERVAL = 10.0
"""Seconds between two checks whether a page's login is still valid."""
_LOGGED_OUT = 1008
"""The code of a WebSocket that is closed for a reason of policy."""
STOPPED = "The user stopped the call in the side panel."
"""The reason that the client of a stopped call gets."""
STOPPED_BY = "you, in the side panel"
_NO_CALL = "The call has ended already."
_NO_RESULT = (
    "The notebook no longer has the result of this call: it drops large and old ones. `%mcp "
    "record` records all later calls in a file."
)
_KEEP = "private, max-age=86400, immutable"
"""The `Cache-Control` of what does not change while its address is used."""
_NO_DETAILS = "The notebook no longer has this call."
_NO_PICTURE = "The notebook no longer has this picture, or it is too large for the side panel."


_Number = Annotated[int, msgspec.Meta(ge=1)]


class _Action(Struct, frozen=True, kw_only=True, tag_field="action", forbid_unknown_fields=True):
    """An action of the user in a panel, which becomes a request to the kernel."""

    request: ClassVar[Callable[..., PanelRequest]]
    """Makes the request from its id and the action's own fields."""

    kernel: str
    """The Jupyter id of the notebook's kernel."""
    record: str | None = None
    """The id of the kernel's record, from the state that the page shows."""

    def write(self, number: int) -> PanelRequest:
        """Return the request, with this id."""
        own = structs.asdict(self)
        del own["kernel"], own["record"]
        return type(self).request(id=number, **own)


def _define(
    action: str,
    message: type[messages.Message],
    number: str = "",
    **fixed: str,
) -> type[_Action]:
    """Return an action, with the fields of the message that it becomes.

    Args:
        action: Its name.
        message: The message.
        number: What the page calls the message's `number`.
        fixed: The fields that a page does not set.
    """
    fields: list[Any] = [
        (each.name, _Number if each.name == "number" else each.type)
        + (() if each.required else (each.default,))
        for each in structs.fields(message)
        if each.name not in {"id", *fixed}
    ]
    made = msgspec.defstruct(
        action,
        fields,
        bases=(_Action,),
        namespace={"request": partial(message, **fixed)},
        tag=action,
        rename={"number": number},
        frozen=True,
        kw_only=True,
    )
    return cast("type[_Action]", made)


_ACTIONS = (
    _define("stop", messages.StopCall, "call", reason=STOPPED, by=STOPPED_BY),
    _define("answer", messages.AnswerConsent, "question"),
    _define("remove", messages.RemoveTool),
    _define("lock", messages.LockTool),
    _define("switch", messages.SwitchTool),
    _define("propose", messages.SwitchProposals),
    _define("take", messages.TakeProposal, "proposal"),
    _define("settle", messages.SettleProposal, "proposal"),
    _define("reject", messages.RejectProposal, "proposal"),
    _define("undo", messages.UndoProposal, "proposal"),
)
_ANY_ACTION: msgspec.json.Decoder[_Action] = msgspec.json.Decoder(Union[_ACTIONS])  # noqa: UP007
_Outcome: TypeAlias = messages.PanelAnswer | messages.CallStopped


class StateHandler(AuthorizedHandler):
    """``GET api/state``: the state of all notebooks."""

    async def get(self) -> None:
        """Answer with the state of each notebook, by the ids of their kernels."""
        links = _find_links(self)
        async with links.opened():
            self.finish({"notebooks": links.read()})


class ActionHandler(AuthorizedHandler):
    """``POST api/actions``: stop a call, answer a question, decide about a proposed cell..."""

    async def post(self) -> None:
        """Run the action, and answer with the outcome.

        The status is 400 if the body is not an action, 409 if the action failed.
        """
        try:
            action = _ANY_ACTION.decode(self.request.body)
        except msgspec.DecodeError as error:
            text = f"This is not an action of the side panel: {error}."
            return self.refuse(HTTPStatus.BAD_REQUEST, text)
        links = _find_links(self)
        try:
            async with links.opened():
                answer, _ = await links.ask(action.kernel, action.write, record=action.record)
        except LinkError as error:
            return self.refuse(HTTPStatus.CONFLICT, str(error))
        text, is_error = _read(answer)
        if is_error:
            return self.refuse(HTTPStatus.CONFLICT, text)
        self.finish({"message": text})
        return None


class CallHandler(AuthorizedHandler):
    """``GET api/calls/KERNEL/NUMBER``: a call's details.

    With ``/pictures/INDEX``, a picture of its result; with ``/thumbnail``, the first one in a few
    kilobytes; with ``/cell``, a cell with the call and its result.
    """

    async def get(self, kernel: str, number: str, part: str, picture: str | None) -> None:
        """Answer with a call's arguments and result, or with a part of it.

        The status is 404 if the notebook no longer has that, and 409 if it does not answer.
        """
        links = _find_links(self)
        is_cell, is_small = part == "/cell", part == "/thumbnail"
        index = int(picture) if picture is not None else 0 if is_small else None

        def make(request: int) -> messages.AskCall:
            return messages.AskCall(
                id=request, number=int(number), as_cell=is_cell, picture=index, is_small=is_small
            )

        try:
            async with links.opened():
                details, attachments = await links.ask(kernel, make)
        except LinkError as error:
            return self.refuse(HTTPStatus.CONFLICT, str(error))
        if not details.is_known:
            return self.refuse(HTTPStatus.NOT_FOUND, _NO_DETAILS)
        if is_cell and not details.has_cell:
            return self.refuse(HTTPStatus.NOT_FOUND, _NO_RESULT)
        if index is not None and not attachments:
            return self.refuse(HTTPStatus.NOT_FOUND, _NO_PICTURE)
        if is_cell:
            self._send_part("application/json", attachments[0], "no-store")
        elif index is not None:
            mime_type = details.pictures[0]  # of a raster picture, always
            self._send_part(mime_type, attachments[0], _KEEP)
        else:
            parts = structs.asdict(details)
            del parts["id"]  # of the request
            self.finish(parts)
        return None

    def _send_part(self, mime_type: str, data: bytes, caching: str) -> None:
        self.set_header("Content-Type", mime_type)
        # No browser may interpret it as anything else.
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", caching)
        self.finish(data)

    def finish(self, *args: Any, **kwargs: Any) -> Any:
        """End the answer; `APIHandler` would make each one JSON."""
        return JupyterHandler.finish(self, *args, **kwargs)


class ChangesHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``api/changes``: a WebSocket that sends a page the states of all notebooks, and then changes.

    Each message is a `notebook_links.Event`. After the first states comes ``{"ready": true}``, with
    the ``requirement`` of `find_plain_requirement`.
    """

    auth_resource = "kernels"

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Admit the page, or raise.

        Raises:
            HTTPError: 403.
        """
        if not (await self._is_allowed(self.current_user) and self.check_origin()):
            raise HTTPError(HTTPStatus.FORBIDDEN)
        # As for a POST: for a GET, Jupyter Server takes an address that it came from for enough.
        self.request.method = "POST"
        try:
            self.check_xsrf_cookie()
        finally:
            self.request.method = "GET"
        await super().get(*args, **kwargs)

    async def _is_allowed(self, user: Any) -> bool:
        return user is not None and await ensure_async(
            self.authorizer.is_authorized(self, user, "execute", self.auth_resource)
        )

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Send states and changes until the page closes the WebSocket."""
        super().open(*args, **kwargs)
        self._watch = PeriodicCallback(self._check_login, LOGIN_INTERVAL * 1_000)
        self._watch.start()
        _find_pages(self).add(self)
        await _find_links(self).add(self._send)
        self._send({"ready": True, "requirement": find_plain_requirement()})

    def on_message(self, message: str | bytes) -> None:
        """Ignore messages of the page: requests have their own routes."""

    def on_close(self) -> None:
        """Stop sending."""
        super().on_close()
        self._watch.stop()
        _find_pages(self).discard(self)
        _find_links(self).remove(self._send)

    async def _check_login(self) -> None:
        """Close the WebSocket once its cookie or token would not admit it any more."""
        asked_anew = JupyterHandler(self.application, self.request)  # this one knows its user
        user = await ensure_async(self.identity_provider.get_user(asked_anew))
        if not await self._is_allowed(user):
            self.close(_LOGGED_OUT, "The login has ended.")

    def _send(self, event: Event) -> None:
        try:
            self.write_message(json.dumps(event))
        except WebSocketClosedError:  # `on_close` follows, or came before `add`
            _find_links(self).remove(self._send)


def end_with_logout(app: Any) -> None:
    """Close the WebSockets of pages whose user logs out of the server: cookies are not revoked."""
    provider = app.identity_provider
    clear = provider.clear_login_cookie

    def clear_and_close(handler: JupyterHandler) -> None:
        cookie = handler.get_cookie(provider.get_cookie_name(handler))
        clear(handler)
        for page in tuple(_find_pages(handler)) if cookie else ():
            if page.get_cookie(provider.get_cookie_name(page)) == cookie:
                page.close(_LOGGED_OUT, "The login has ended.")

    provider.clear_login_cookie = clear_and_close


def _find_pages(handler: JupyterHandler) -> set["ChangesHandler"]:
    """Return the open WebSockets."""
    return cast("set[ChangesHandler]", handler.settings.setdefault(_PAGES_KEY, set()))


def _find_links(handler: JupyterHandler) -> NotebookLinks:
    return cast("NotebookLinks", handler.settings[LINKS_KEY])


def _read(answer: _Outcome) -> tuple[str, bool]:
    """Return a sentence about an action's outcome, and whether it failed."""
    if isinstance(answer, messages.PanelAnswer):
        return answer.message, answer.is_error
    if answer.tool is None:
        return _NO_CALL, True
    if answer.state != "cancelled":
        return f"{answer.tool} had ended before: {answer.state}.", False
    rest = " Its code has not reacted yet." if answer.is_stopping else ""
    return f"Stopped {answer.tool}.{rest}", False
