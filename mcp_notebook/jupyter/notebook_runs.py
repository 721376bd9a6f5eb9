"""``POST /mcp-notebook/api/notebooks``: opens a notebook, and runs it if the client says so.

Runs on the event loop of Jupyter Server. `mcp-notebook connect` posts here before it forwards MCP
messages, so that a notebook that nobody has open offers its tools. The kernel is that of Jupyter's
session for the notebook: a browser that opens the notebook gets the same one. So its user may run
cells between ours: a run that fails restarts the kernel only if nobody else has computed there.

Each notebook is opened by one request at a time, and the next one finds it open. So of two clients
that come at once, one starts the kernel and runs the cells. A client that disconnects does not end
the run, because others may wait for it.

The answer is a stream of events, each a JSON object: ``{"step": TEXT}`` before each step, and at
the end ``{"done": true}`` or ``{"error": TEXT}``.
"""

import asyncio
import contextlib
import json
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from queue import Empty
from typing import Any, cast
from weakref import WeakValueDictionary

import msgspec
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.session import Session
from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from jupyter_server.services.sessions.sessionmanager import SessionManager
from tornado.ioloop import PeriodicCallback
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from mcp_notebook.discovery.greeting import greet
from mcp_notebook.discovery.records import Record, list_live_records
from mcp_notebook.errors import KernelDied, LinkError, NotebookError
from mcp_notebook.jupyter.authorized_handler import AuthorizedHandler
from mcp_notebook.settings.settings import Settings

RUNS_KEY = "mcp_notebook_runs"
"""The key of the `NotebookRuns` in the settings of the server's application."""
_PING_INTERVAL = 15_000
"""Milliseconds between two comments in the stream, so that no proxy ends it."""
_LOOK = 1.0
"""Seconds between two checks whether a kernel that has not answered is alive."""
_PROBE_LIMIT = 5.0
"""Seconds that a kernel has to say how many cells have run in it, after one of ours has ended."""
_DROPPED = "aborted"
"""The status of a cell that the kernel did not run, because one before it failed."""
_LEFT_ALONE = (
    "The kernel was not restarted, because someone else runs cells in it as well: restart it in "
    "the browser before you try again."
)
_NO_ORDER = 'Name a notebook: {"path": its path on this server, "run": whether to run its cells}.'
_SKIPPED = "skip-execution"
"""The tag of cells that are not run, as elsewhere in Jupyter."""

Tell = Callable[[str], None]
"""Takes a sentence about the next step."""


class NotebookRuns:
    """Opens and runs notebooks of one server; belongs to the event loop.

    Args:
        contents: The server's files.
        kernels: The server's kernels.
        sessions: The server's sessions: which notebook has which kernel.
        settings: All settings.
    """

    def __init__(
        self,
        contents: ContentsManager,
        kernels: MappingKernelManager,
        sessions: SessionManager,
        settings: Settings,
    ) -> None:
        self._contents = contents
        self._kernels = kernels
        self._sessions = sessions
        self._settings = settings
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while a notebook is being opened, by its path."""

    async def open(self, path: str, tell: Tell, *, run: bool) -> None:
        """Open a notebook unless it is open, and run its cells unless they have run.

        Args:
            path: The notebook, seen from the server's root folder.
            tell: Called before each step.
            run: Whether to run the cells.

        Raises:
            NotebookError: It does not exist, its kernel does not start, or a cell fails.
        """
        path = posixpath.normpath(path)  # as pages name it to sessions: without `./`
        turn = self._turns.setdefault(path, asyncio.Lock())
        if turn.locked():
            tell(f"{path} is being opened for another client already ...")
        async with turn:
            notebook = await self._read(path)
            kernel_id = await self._find_kernel(path, notebook, tell)
            if run and await self._find_record(kernel_id) is None:
                await self._run(path, kernel_id, _list_cells(notebook), tell)

    async def _read(self, path: str) -> Mapping[str, Any]:
        try:
            model = await ensure_async(self._contents.get(path, content=True, type="notebook"))
        except HTTPError as error:
            reason = "does not exist" if error.status_code == HTTPStatus.NOT_FOUND else str(error)
            raise NotebookError(
                f"The notebook {path!r} cannot be opened on the Jupyter server: it {reason}. Check "
                "the path in the address: it begins at the server's root folder."
            ) from None
        return cast("Mapping[str, Any]", model["content"])

    async def _find_kernel(self, path: str, notebook: Mapping[str, Any], tell: Tell) -> str:
        """Return the id of a notebook's kernel, which is started if there is none."""
        if await self._sessions.session_exists(path=path):
            session = await self._sessions.get_session(path=path)
            return cast("str", session["kernel"]["id"])
        tell(f"Starting a kernel for {path} ...")
        metadata = notebook.get("metadata", {})
        name = metadata.get("kernelspec", {}).get("name")
        try:
            specs = self._kernels.kernel_spec_manager
            if name and specs:  # a start that fails for it would keep the server from stopping
                try:
                    specs.get_kernel_spec(name)
                except NoSuchKernel:
                    language = str(metadata.get("language_info", {}).get("name"))
                    substitute = self._find_python_kernel(specs)
                    if language.lower() != "python" or substitute is None:
                        raise
                    tell(
                        f"The kernel {name!r} is not installed here; {substitute!r} is used "
                        "instead."
                    )
                    name = substitute
            session = await self._sessions.create_session(
                path=path,
                name=cast("Any", PurePosixPath(path).name),
                type="notebook",
                kernel_name=name,
            )
        except Exception as error:  # a kernelspec that does not exist, or whatever its start raises
            raise NotebookError(
                f"The kernel {name or 'of the server'!r} of {path} did not start: {error}. Open "
                "the notebook in the browser and choose another kernel."
            ) from error
        return cast("str", session["kernel"]["id"])

    def _find_python_kernel(self, specs: KernelSpecManager) -> str | None:
        """Return the name of the server's default kernel, or of the only Python kernel.

        The rule is that of notebooks that a bridge runs.
        """
        names = [
            name
            for name, found in specs.get_all_specs().items()
            if found["spec"]["language"].lower() == "python"
        ]
        if (default := self._kernels.default_kernel_name) in names:
            return default
        return names[0] if len(names) == 1 else None

    async def _find_record(self, kernel_id: str) -> Record | None:
        """Return the record of a kernel that has loaded the extension; None for any other."""
        folder: Path = self._settings.records_folder
        records = await asyncio.to_thread(list_live_records, folder)
        return next((record for record in records if record.jupyter_id == kernel_id), None)

    async def _run(self, path: str, kernel_id: str, cells: Sequence[str], tell: Tell) -> None:
        kernel = self._kernels.get_kernel(kernel_id)
        limit = self._settings.start_timeout
        with _connect(kernel) as client:
            runner = _Runner(kernel, client)
            try:
                is_used = await runner.is_used_by_others(path, limit)
            except TimeoutError:
                raise NotebookError(
                    f"The kernel of {path} did not answer within {limit:g} s: it is running a "
                    "cell, or is still starting. Nothing was run: try again when it is idle, or "
                    "run the notebook in the browser."
                ) from None
            if is_used:
                raise NotebookError(
                    f"{path} is open on the Jupyter server, and cells have run there, but not "
                    "`%load_ext mcp_notebook`. Nothing was run, because that could overwrite what "
                    "its user computed: run the notebook in the browser."
                )
            try:
                await self._run_cells(runner, path, cells, tell)
                await self._check_tools(path, kernel_id)
            except KernelDied:  # the server restarts it
                raise
            except NotebookError as error:
                if await self._may_be_in_use(runner, path, kernel_id):
                    raise NotebookError(f"{error} {_LEFT_ALONE}") from None
                await self._kernels.restart_kernel(kernel_id)  # so that the next attempt runs it
                raise

    async def _check_tools(self, path: str, kernel_id: str) -> None:
        """Check that a notebook that has run offers tools, and that bridges know them."""
        record = await self._find_record(kernel_id)
        if record is None:
            raise NotebookError(
                f"{path} has run, but offers no tools: none of its cells has run `%load_ext "
                "mcp_notebook`. Add it to the first cell."
            )
        # Before it welcomes anyone, the kernel tells those that it has welcomed of new tools.
        with contextlib.suppress(LinkError):
            greeting = await greet(record)
            greeting.connection.transport.close()

    async def _may_be_in_use(self, runner: "_Runner", path: str, kernel_id: str) -> bool:
        """Return whether somebody else may be computing in a kernel in which a run has failed."""
        try:
            return await runner.is_used_by_others(path, _PROBE_LIMIT)
        except TimeoutError:  # a cell is running: it may be that of a page, or ours
            return bool(self._kernels.kernel_model(kernel_id)["connections"])

    async def _run_cells(
        self, runner: "_Runner", path: str, cells: Sequence[str], tell: Tell
    ) -> None:
        for number, source in enumerate(cells, start=1):
            where = f"Code cell {number} of {len(cells)} of {path}"
            tell(f"{where} ...")
            reply = await runner.run(where, source)
            if reply["status"] == _DROPPED:
                raise NotebookError(f"{where} was not run, because another cell failed before it.")
            if reply["status"] != "ok":
                reason = f"{reply.get('ename', 'Error')}: {reply.get('evalue', '')}"
                raise NotebookError(f"{where} failed: {reason.rstrip('. ')}. Fix the cell.")


class _Runner:
    """Runs cells in a kernel in which others may run cells as well, such as a user in a browser.

    Args:
        kernel: The kernel's manager.
        client: Connected to its shell channel.
    """

    def __init__(self, kernel: Any, client: AsyncKernelClient) -> None:
        self._kernel = kernel
        self._client = client
        self._count = 0
        """How many cells have run here, or will when their turn comes."""

    async def run(self, where: str, source: str) -> Mapping[str, Any]:
        """Run a cell, and return the content of the reply.

        Args:
            where: The cell, for messages.
            source: Its code.

        Raises:
            KernelDied: The kernel ended.
        """
        self._count += 1
        reply = await self._execute(where, source, None)
        self._count -= reply["status"] == _DROPPED
        return reply

    async def is_used_by_others(self, where: str, limit: float) -> bool:
        """Return whether cells have run in the kernel that were not run here.

        Raises:
            KernelDied: The kernel ended.
            TimeoutError: It did not answer within the limit.
        """
        reply = await self._execute(where, "", limit)
        return bool(reply["status"] == _DROPPED or reply["execution_count"] > self._count)

    async def _execute(self, where: str, source: str, limit: float | None) -> Mapping[str, Any]:
        """Run code, and return the content of the reply; without code, wait for the kernel."""
        kernel, client = self._kernel, self._client
        async with asyncio.timeout(limit):
            process = _find_process(kernel)
            # Nobody would see a question. An error must not drop the cells of others that wait.
            sent = client.execute(source, silent=not source, allow_stdin=False, stop_on_error=False)
            while True:
                with contextlib.suppress(Empty):
                    reply = await client.get_shell_msg(timeout=_LOOK)
                    if reply["parent_header"].get("msg_id") == sent:
                        return cast("Mapping[str, Any]", reply["content"])
                    continue
                # The server restarts a kernel that ends, and the user may.
                if process != _find_process(kernel) or not await ensure_async(kernel.is_alive()):
                    raise KernelDied(f"{where}: the kernel ended. Its memory may be full.")


class NotebookHandler(AuthorizedHandler):
    """``POST api/notebooks``: open a notebook, and perhaps run it."""

    async def post(self) -> None:
        """Open the notebook of the order, and tell each step.

        The status is 400 if the body is not an order.
        """
        try:
            order = msgspec.json.decode(self.request.body, type=_Order)
        except msgspec.DecodeError:
            self.refuse(HTTPStatus.BAD_REQUEST, _NO_ORDER)
            return
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-cache")
        self.set_header("X-Accel-Buffering", "no")
        ping = PeriodicCallback(lambda: self._send(": ping\n\n"), _PING_INTERVAL)
        ping.start()
        runs = cast("NotebookRuns", self.settings[RUNS_KEY])
        try:
            await runs.open(
                order.path.strip("/"), lambda text: self._tell(step=text), run=order.run
            )
        except NotebookError as error:
            self._tell(error=str(error))
        else:
            self._tell(done=True)
        finally:
            ping.stop()

    def _tell(self, **event: Any) -> None:
        self._send(f"data: {json.dumps(event)}\n\n")

    def _send(self, text: str) -> None:
        with contextlib.suppress(StreamClosedError):  # the client has disconnected
            self.write(text)
            self.flush()


@contextlib.contextmanager
def _connect(kernel: Any) -> Iterator[AsyncKernelClient]:
    """Connect to a kernel's shell channel for the block."""
    # A session of its own: with the server's, each would get replies to the other's requests.
    session = Session(key=kernel.session.key, signature_scheme=kernel.session.signature_scheme)
    client = cast("AsyncKernelClient", kernel.client(session=session))
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        yield client
    finally:
        client.stop_channels()


def _find_process(kernel: Any) -> int | None:
    """Return the id of a kernel's process; None if it is unknown, as on another machine."""
    return getattr(kernel.provisioner, "pid", None)


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    """The notebook, seen from the server's root folder."""
    run: bool = False
    """Whether to run its cells."""


def _list_cells(notebook: Mapping[str, Any]) -> list[str]:
    """Return the sources of the code cells to run."""
    return [
        cell["source"]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        and cell["source"].strip()
        and _SKIPPED not in cell["metadata"].get("tags", ())
    ]
