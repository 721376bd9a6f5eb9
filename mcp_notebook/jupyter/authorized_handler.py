"""Authorization of the routes: only users who may run code in the server's kernels.

Runs on the event loop of Jupyter Server, which authenticates the user: by a token in the header, or
by a cookie with an XSRF token. A rejected request is answered with 401 or 403 in JSON, never with a
redirect to a login page.
"""

from http import HTTPStatus
from typing import Any, NoReturn

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import APIHandler
from tornado.web import HTTPError

_NO_LOGIN = (
    "The token is missing or wrong. Send the header `Authorization: token TOKEN`, with the token "
    "of this Jupyter Server or one from its JupyterHub."
)
_IN_THE_ADDRESS = (
    "A token in an address ends up in logs and is not accepted here. Send the header "
    "`Authorization: token TOKEN` instead."
)
_NOT_ALLOWED = "This user may not run code in the kernels of this Jupyter Server."
_FOREIGN_HOST = (
    "This Jupyter Server does not serve this Host. If it should, set "
    "`ServerApp.allow_remote_access`."
)


class AuthorizedHandler(APIHandler):
    """A handler that admits only users who may run code in the kernels."""

    auth_resource = "kernels"

    async def prepare(self) -> None:  # type: ignore[override] # as in APIHandler
        """Admit the request, or raise.

        Raises:
            HTTPError: 401 without a valid login, 403 if the user lacks the permission.
        """
        if not self.check_host():
            self.current_user = None
            raise HTTPError(HTTPStatus.FORBIDDEN, _FOREIGN_HOST)
        if "token" in self.request.arguments:  # in the query string, or in a form in the body
            self.current_user = None
            raise HTTPError(HTTPStatus.UNAUTHORIZED, _IN_THE_ADDRESS)
        try:
            await super().prepare()
        except HTTPError as error:
            # Without a login, report 401 below, whatever else is wrong.
            if error.status_code != HTTPStatus.FORBIDDEN or self.current_user is not None:
                raise
        if self.request.method == "OPTIONS":  # a CORS preflight has no login
            return
        if self.current_user is None:
            # On a JupyterHub, this raises 403 if the login is valid but not for this server.
            self.redirect(self.base_url)
        is_authorized = self.authorizer.is_authorized(
            self, self.current_user, "execute", self.auth_resource
        )
        if not await ensure_async(is_authorized):
            raise HTTPError(HTTPStatus.FORBIDDEN, _NOT_ALLOWED)

    def redirect(self, url: str, permanent: bool = False, status: int | None = None) -> NoReturn:  # noqa: ARG002, FBT001, FBT002 - as in tornado
        """Do not redirect to a login page.

        Raises:
            HTTPError: 401.
        """
        raise HTTPError(HTTPStatus.UNAUTHORIZED, _NO_LOGIN)

    def refuse(self, status: HTTPStatus, text: str) -> None:
        """Answer a request with the reason why nothing was done."""
        self.set_status(status)
        self.finish({"message": text})

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with an error in JSON."""
        if status_code == HTTPStatus.UNAUTHORIZED:
            self.set_header("WWW-Authenticate", "Bearer")
        super().write_error(status_code, **kwargs)
