"""Who may use the routes: whoever may run code in the server's kernels.

Runs on the event loop of Jupyter Server, whose own login says who it is: a token in the header, or
a cookie together with an XSRF token. A request that is not let in is answered with 401 or 403 in
JSON, never with a redirect to a page.
"""

from http import HTTPStatus
from typing import Any, NoReturn

from jupyter_core.utils import ensure_async
from jupyter_server.base.handlers import APIHandler
from tornado.web import HTTPError

_NO_LOGIN = (
    "The token is missing or wrong. Send the header `Authorization: token TOKEN`, with the token "
    "of this Jupyter Server or one that its JupyterHub has given you."
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
    """A handler whose methods are reached only by users who may run code in the kernels."""

    auth_resource = "kernels"

    async def prepare(self) -> None:  # type: ignore[override] # as in APIHandler
        """Let the request in, or raise.

        Raises:
            HTTPError: 401 without a login, 403 if it does not allow this.
        """
        if not self.check_host():
            self.current_user = None
            raise HTTPError(HTTPStatus.FORBIDDEN, _FOREIGN_HOST)
        if "token" in self.request.arguments:  # of the address, or of a form in the body
            self.current_user = None
            raise HTTPError(HTTPStatus.UNAUTHORIZED, _IN_THE_ADDRESS)
        try:
            await super().prepare()
        except HTTPError as error:
            # What is wrong without a login is that there is none, whatever else there is.
            if error.status_code != HTTPStatus.FORBIDDEN or self.current_user is not None:
                raise
        if self.request.method == "OPTIONS":  # asks what may be asked, and has no login
            return
        if self.current_user is None:
            # A JupyterHub has this raise 403 if the login is good, but not for this server.
            self.redirect(self.base_url)
        is_authorized = self.authorizer.is_authorized(
            self, self.current_user, "execute", self.auth_resource
        )
        if not await ensure_async(is_authorized):
            raise HTTPError(HTTPStatus.FORBIDDEN, _NOT_ALLOWED)

    def redirect(self, url: str, permanent: bool = False, status: int | None = None) -> NoReturn:  # noqa: ARG002, FBT001, FBT002 - as in tornado
        """Send nobody to a page to log in.

        Raises:
            HTTPError: 401.
        """
        raise HTTPError(HTTPStatus.UNAUTHORIZED, _NO_LOGIN)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with an error in JSON."""
        if status_code == HTTPStatus.UNAUTHORIZED:
            self.set_header("WWW-Authenticate", "Bearer")
        super().write_error(status_code, **kwargs)
