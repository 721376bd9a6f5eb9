"""A real JupyterHub with its proxy, on loopback, within a test's home folder."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from jupyter_servers import JupyterServer
from live import TIMEOUT, kernel_env
from npm_packages import bring_in

SERVICE_TOKEN = "token-of-the-tests-service-0123456789abcdef"
LOOK = 0.2
CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{proxy}/"
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.hub_port = {hub}
c.JupyterHub.db_url = "sqlite:///{home}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{home}/cookie_secret"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = ["{chp}"]
c.ConfigurableHTTPProxy.pid_file = "{home}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{home}/{{username}}"
c.Spawner.args = ["--allow-root", "--ServerApp.log_level=INFO"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.env_keep = ["PATH", "MPLCONFIGDIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX"]
def refuse(spawner):
    if spawner.user.name == "eve":
        raise RuntimeError("No room on this machine.")
c.Spawner.pre_spawn_hook = refuse
c.JupyterHub.services = [{{"name": "tests", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{
        "name": "tests",
        "scopes": ["admin:users", "admin:servers", "tokens"],
        "services": ["tests"],
    }}
]
"""


@dataclass
class Hub:
    """A JupyterHub, seen through its REST API."""

    http: httpx2.Client
    url: str
    home: Path

    def add_users(self, *names: str) -> None:
        """Add users and start their servers, at the same time."""
        for name in names:
            self.http.post(f"users/{name}").raise_for_status()
        with ThreadPoolExecutor() as threads:  # the hub answers when a server is soon there, too
            list(threads.map(self._start_server, names))

    def _start_server(self, name: str) -> None:
        self.http.post(f"users/{name}/server").raise_for_status()
        deadline = time.monotonic() + TIMEOUT
        while not self.http.get(f"users/{name}").json()["servers"].get("", {}).get("ready"):
            assert time.monotonic() < deadline, (self.home / "hub.log").read_text()
            time.sleep(LOOK)

    def stop_server(self, name: str) -> None:
        """Stop a user's server, as a hub does with one that is idle."""
        self.http.delete(f"users/{name}/server").raise_for_status()
        deadline = time.monotonic() + TIMEOUT
        while self.http.get(f"users/{name}").json()["servers"]:
            assert time.monotonic() < deadline, (self.home / "hub.log").read_text()
            time.sleep(LOOK)

    def make_token(self, name: str, *scopes: str) -> str:
        """Make a token of a user with only these scopes."""
        answer = self.http.post(f"users/{name}/tokens", json={"scopes": scopes})
        return answer.raise_for_status().json()["token"]

    @contextmanager
    def server(self, name: str, token: str) -> Iterator[JupyterServer]:
        """Look at a user's server through the hub's proxy, with a token."""
        url = f"{self.url}user/{name}/"
        headers = {"Authorization": f"token {token}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False) as http:
            home = self.home / name
            yield JupyterServer(http, home, url, home / ".local/share/jupyter/runtime")


@contextmanager
def jupyter_hub(home: Path) -> Iterator[Hub]:
    """Run a JupyterHub with the simple spawner and the dummy authenticator, and end it."""
    modules = bring_in(Path(__file__).parent)
    proxy, hub, api = _find_free_ports(3)
    config = home / "jupyterhub_config.py"
    chp = modules / "configurable-http-proxy" / "bin" / "configurable-http-proxy"
    values = {"proxy": proxy, "hub": hub, "api": api, "home": home, "token": SERVICE_TOKEN}
    config.write_text(CONFIG.format(chp=chp, **values))
    env = kernel_env(home) | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with ExitStack() as stack:
        log = stack.enter_context((home / "hub.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        stack.callback(process.wait, 2 * TIMEOUT)  # it ends the servers of its users first
        stack.callback(process.terminate)
        url = f"http://127.0.0.1:{proxy}/"
        http = stack.enter_context(
            httpx2.Client(
                base_url=f"{url}hub/api/",
                headers={"Authorization": f"token {SERVICE_TOKEN}"},
                timeout=TIMEOUT,
                trust_env=False,
            )
        )
        deadline = time.monotonic() + TIMEOUT
        while not _is_up(http):
            assert process.poll() is None, (home / "hub.log").read_text()
            assert time.monotonic() < deadline, (home / "hub.log").read_text()
            time.sleep(LOOK)
        yield Hub(http, url, home)


def _is_up(http: httpx2.Client) -> bool:
    try:
        return http.get("").status_code == httpx2.codes.OK
    except httpx2.TransportError:
        return False


def _find_free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [each.getsockname()[1] for each in sockets]
