"""Real Jupyter Servers for tests, on loopback, within the test's home folder."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
import psutil
from forked_command import KERNEL, SERVER, find_pid, list_words
from jupyter_client.blocking import BlockingKernelClient
from live import TIMEOUT, LiveKernel, Output, find_free_port, kernel_env, until, wait_for_ends
from tornado.websocket import WebSocketClientConnection

from mcp_notebook.discovery.records import list_live_records

TOKEN = "token-of-the-tests-0123456789abcdef"
HEADERS = {"Authorization": f"token {TOKEN}"}
LOOK = 0.1
"""Seconds between two looks that are requests."""


@dataclass
class JupyterServer:
    """A Jupyter Server, seen through its REST API."""

    http: httpx2.Client
    home: Path
    url: str
    """Its address with its base URL; ends with a slash."""
    runtime: Path
    """Where the connection files of its kernels are."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return find_pid(self.process.pid)

    def start_kernel(self, *cells: str, path: str | None = None) -> str:
        """Start a kernel, run cells in it, leave it alone, and return its id.

        Args:
            *cells: What to run.
            path: The notebook that it is for, as seen by the server; None for no notebook.
        """
        if path is None:
            kernel = self.http.post("api/kernels").raise_for_status().json()
        else:
            what = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
            kernel = self.http.post("api/sessions", json=what).raise_for_status().json()["kernel"]
        self.run(kernel["id"], *cells)
        return kernel["id"]

    def run(self, kernel_id: str, *cells: str) -> list[Output]:
        """Run cells in a kernel that runs."""
        with self.kernel(kernel_id) as kernel:
            return [kernel.ok(cell) for cell in cells]

    @contextmanager
    def kernel(self, kernel_id: str) -> Iterator[LiveKernel]:
        """Connect to a kernel for the block."""
        file = self.runtime / f"kernel-{kernel_id}.json"
        client = until(lambda: _connect(file), every=LOOK)
        try:
            yield LiveKernel(None, client, self.home)
        finally:
            client.stop_channels()

    def find_bridges(self) -> list[psutil.Process]:
        """Return the bridges that it has started."""
        bridges = []
        for child in psutil.Process(self.pid).children():
            with suppress(psutil.NoSuchProcess):  # jupyter-lsp runs npm for a second
                if "mcp_notebook.cli.jupyter_bridge" in child.cmdline():
                    bridges.append(child)
        return bridges

    def states(self) -> dict[str, str]:
        """Return what the server takes its kernels for."""
        kernels = self.http.get("api/kernels").raise_for_status().json()
        return {kernel["id"]: kernel["execution_state"] for kernel in kernels}


async def close_websocket(socket: WebSocketClientConnection) -> None:
    """Close a page's connection, and wait until the server has."""
    socket.close()
    with anyio.fail_after(TIMEOUT), anyio.CancelScope(shield=True):
        while await socket.read_message() is not None:
            pass


def server_env(home: Path) -> dict[str, str]:
    """Return the environment that keeps a server within a home folder."""
    return kernel_env(home) | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_PREFER_ENV_PATH": "0",  # else the kernelspec of the environment would come first
        "TMPDIR": str(home),  # where a bridge that is killed leaves its socket
    }


@contextmanager
def jupyter_server(
    home: Path,
    *options: str,
    token: str = TOKEN,
    env: dict[str, str] | None = None,
    python: Path | None = None,
) -> Iterator[JupyterServer]:
    """Run a Jupyter Server with the extensions that are installed, and end it.

    Args:
        home: Its root folder, and the home folder of all that it starts.
        *options: Its options.
        token: Its token.
        env: Its variables besides those that keep it within the home folder.
        python: The Python whose server it is; None: that of the tests.
    """
    settings = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": find_free_port(),  # old servers do not say which one 0 was
        "ServerApp.root_dir": home,
        "IdentityProvider.token": token,
    }
    words = ["--no-browser", "--allow-root", *options]
    words += [f"--{name}={value}" for name, value in settings.items()]
    if not (home / "data").exists():
        write_kernelspec(home / "data")
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [python, "-m", SERVER, *words]
            if python
            else list_words(*words, module=SERVER, like=SERVER),
            env=server_env(home) | (env or {}),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        url = until(lambda: _find_url(process, home), every=LOOK)
        with httpx2.Client(base_url=url, headers=HEADERS, timeout=TIMEOUT, trust_env=False) as http:
            until(lambda: _listens(http), every=LOOK)  # old servers say where before they do
            yield JupyterServer(http, home, url, home / "runtime", process)
    finally:
        pids = _list_processes(process, home)
        process.terminate()
        try:
            process.wait(TIMEOUT / 4)
        except subprocess.TimeoutExpired:
            # A signal was lost once: Jupyter logs in its handler, which raises in the middle of
            # another line of its log.
            process.terminate()
            process.wait(TIMEOUT)
        wait_for_ends(pids)


def _list_processes(process: subprocess.Popen[bytes], home: Path) -> list[int]:
    """Return the ids of the kernels and the bridge of a server, which write to its home folder."""
    pids = [record.pid for record in list_live_records(home / ".mcp-notebook" / "kernels")]
    if process.poll() is None:
        server = psutil.Process(find_pid(process.pid))
        pids += [child.pid for child in server.children(recursive=True)]
    return pids


def write_kernelspec(data: Path) -> None:
    """Have kernels start in a fraction of the time, as those of `live` do.

    Args:
        data: The server's data folder, which `server_env` puts before that of the environment.
    """
    argv = list_words("-f", "{connection_file}", module=KERNEL, like=KERNEL)
    folder = data / "kernels" / "python3"
    folder.mkdir(parents=True)
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def _connect(file: Path) -> BlockingKernelClient | None:
    """Connect to a kernel; None if it does not answer yet, as one that is being restarted."""
    client = BlockingKernelClient(connection_file=str(file))
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=TIMEOUT)
    except RuntimeError:
        client.stop_channels()
        return None
    return client


def _listens(http: httpx2.Client) -> bool:
    try:
        http.get("api")
    except httpx2.ConnectError:
        return False
    return True


def _find_url(process: subprocess.Popen[bytes], home: Path) -> str | None:
    """Return where a server listens, once it does."""
    assert process.poll() is None, (home / "server.log").read_text()
    try:
        record = home / "runtime" / f"jpserver-{find_pid(process.pid)}.json"
        return json.loads(record.read_text())["url"]
    except (FileNotFoundError, json.JSONDecodeError):  # not there yet; half written
        return None


@contextmanager
def login(server: JupyterServer) -> Iterator[httpx2.Client]:
    """Open a page of the server: it has the cookies, and no token."""
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as page:
        page.get("api/status", headers=HEADERS)
        page.get("login", follow_redirects=True)
        assert page.get("api/kernels").status_code == 200
        page.headers["X-XSRFToken"] = page.cookies.get("_xsrf")
        yield page
