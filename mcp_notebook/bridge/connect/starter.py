"""Starts what an address names, as far as it does not run, and finds its endpoint.

Runs on the event loop of `mcp-notebook connect`: before messages are forwarded, and again when a
request finds that the server has ended. A user's server on a JupyterHub is started if the token may
(`hub_server`), a repository on Binder in any case (`binder`). A notebook of the address gets a
kernel (`remote_notebook`); its cells run only if the user wrote ``--run``, and no other notebook is
touched.
"""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import anyio
import httpx2

from mcp_notebook.bridge.connect.addresses import Address, BinderRepository, find_server
from mcp_notebook.bridge.connect.binder import LaunchFile, find_launch
from mcp_notebook.bridge.connect.credentials import Credentials
from mcp_notebook.bridge.connect.find_endpoint import find_endpoint
from mcp_notebook.bridge.connect.hub_server import start_server
from mcp_notebook.bridge.connect.remote import Remote
from mcp_notebook.bridge.connect.remote_notebook import open_notebook
from mcp_notebook.errors import NotebookNotOpen, RemoteError, ServerStopped, Unavailable

_SETTLE_LIMIT = 20.0
"""Seconds for which a server that was started may still be unreachable through its proxy, and for
which its bridge may not know a notebook yet that was run."""
_LOOK_INTERVAL = 0.5
_NOTHING_TO_RUN = (
    "--run needs the address of a notebook, which ends in .ipynb: open it in the browser and copy "
    "the address. For Binder, add ?labpath=NOTEBOOK."
)
Tell = Callable[[str], None]
"""Takes a sentence about the next step."""


class Starter:
    """Starts what one address names.

    Args:
        http: The HTTP client.
        address: The address that the user gave.
        credentials: The token that the user named.
        home: The folder of mcp-notebook's own files.
        run: Whether to run the notebook of the address.
        insecure: Whether an unencrypted connection to another machine is allowed.

    Raises:
        RemoteError: A notebook is to be run, and the address names none.
    """

    def __init__(  # noqa: PLR0913 - what it uses
        self,
        http: httpx2.AsyncClient,
        address: Address | BinderRepository,
        credentials: Credentials,
        *,
        home: Path,
        run: bool,
        insecure: bool,
    ) -> None:
        self._http = http
        self._address = address
        self._credentials = credentials
        self._home = home
        self._run = run
        self._insecure = insecure
        path = address.path if isinstance(address, BinderRepository) else address.notebook
        if run and not (path and path.endswith(".ipynb")):
            raise RemoteError(_NOTHING_TO_RUN)

    async def find(self, tell: Tell) -> Remote:
        """Return the endpoint; start what it needs.

        Args:
            tell: Called with a sentence about each step.

        Raises:
            RemoteError: It cannot be started, or has no endpoint.
        """
        if isinstance(self._address, BinderRepository):
            return await self._find_launch(self._address, tell)
        return await self._find_on_server(self._address, tell)

    async def _find_launch(self, repository: BinderRepository, tell: Tell) -> Remote:
        file = LaunchFile(self._home, repository)
        remote = await find_launch(
            self._http, repository, self._credentials, file, tell, insecure=self._insecure
        )
        if not self._run:
            return remote
        assert repository.path is not None
        server, credentials = remote.url.removesuffix("/mcp-notebook"), remote.credentials
        await open_notebook(self._http, server, repository.path, credentials, tell, run=True)
        # The endpoint of the notebook alone has its tools at once; that of all, a moment later.
        endpoint = f"{remote.url}/{quote(repository.path)}"
        return await self._find_opened(Address((endpoint,), server), credentials)

    async def _find_on_server(self, address: Address, tell: Tell) -> Remote:
        limit: float | None = None
        """When a server that was started must be reachable; None: none was started."""
        is_opened = False
        while True:
            try:
                return await find_endpoint(self._http, address, self._credentials)
            except (ServerStopped, Unavailable) as error:
                if limit is None:
                    await self._start(address, error, tell)
                    limit = anyio.current_time() + _SETTLE_LIMIT
                elif anyio.current_time() > limit:
                    raise
                await anyio.sleep(_LOOK_INTERVAL)
            except NotebookNotOpen as error:
                if address.notebook is None:
                    raise
                if is_opened:
                    raise NotebookNotOpen(
                        f"{address.notebook} is open at {address.server} now, but it has no tools "
                        "yet, as none of its cells were run. Run it in the browser and start your "
                        "client again, or add --run to this command."
                    ) from None
                await self._open(address.server, address.notebook, error, tell)
                if self._run:
                    return await self._find_opened(address, self._credentials)
                is_opened = True

    async def _find_opened(self, address: Address, credentials: Credentials) -> Remote:
        """Return the endpoint of a notebook that has its tools, as soon as the bridge has them."""
        limit = anyio.current_time() + _SETTLE_LIMIT
        while True:
            try:
                return await find_endpoint(self._http, address, credentials)
            except NotebookNotOpen:
                if anyio.current_time() > limit:
                    raise
                await anyio.sleep(_LOOK_INTERVAL)

    async def _start(self, address: Address, stopped: RemoteError, tell: Tell) -> None:
        """Start the server of a user of a JupyterHub; for other servers, raise the error."""
        server = find_server(address.server)
        if server is None:
            raise stopped
        try:
            await start_server(self._http, server, self._credentials, tell)
        except RemoteError as error:
            raise ServerStopped(f"{stopped} This command did not start it. {error}") from None

    async def _open(self, server: str, path: str, absent: NotebookNotOpen, tell: Tell) -> None:
        """Open the notebook of the address, and run it if the user said so."""
        try:
            await open_notebook(self._http, server, path, self._credentials, tell, run=self._run)
        except RemoteError as error:
            raise NotebookNotOpen(f"{'' if self._run else f'{absent} '}{error}") from None
