"""One real Jupyter server with JupyterLab and Notebook 7, which keeps to loopback and its home."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from jupyter_servers import server_env, write_kernelspec
from live import TIMEOUT

TOKEN = "token-of-the-tests-0123456789abcdef"
CONFIG = {
    "ServerApp": {
        "allow_root": True,
        "ip": "127.0.0.1",
        "open_browser": False,
        "port": 0,
        "terminals_enabled": False,
        # JupyterLab would ask Node.js, at each page, whether it has to be built.
        "tornado_settings": {"page_config_data": {"buildAvailable": False, "buildCheck": False}},
    },
    "IdentityProvider": {"token": TOKEN},
    "LabApp": {
        "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "expose_app_in_browser": True,  # lab_page.py runs its commands
        "extension_manager": "readonly",  # the other one asks PyPI
        "news_url": None,
    },
    "JupyterNotebookApp": {"expose_app_in_browser": True},
}
SETTINGS = {
    "apputils-extension/notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
    },
    # Cells out of sight are in the page, too.
    "notebook-extension/tracker": {"windowingMode": "none"},
    # No question at the end whether to save.
    "docmanager-extension/plugin": {"autosave": False},
}


@dataclass(frozen=True)
class LabServer:
    """A server that runs."""

    pid: int
    url: str
    home: Path
    """Of the server and its kernels."""
    folder: Path
    """Where its notebooks are."""

    def address(self, path: str, *, app: str) -> str:
        """Return the address of a notebook in "lab" or in "notebook"."""
        # A workspace of its own: no other notebook is opened again beside it.
        place = {"lab": f"lab/workspaces/{Path(path).stem}/tree", "notebook": "notebooks"}[app]
        return f"{self.url}{place}/{path}?token={TOKEN}"


@contextmanager
def lab_server(
    home: Path, *, env: dict[str, str] | None = None, command: Sequence[str] = ()
) -> Iterator[LabServer]:
    """Start ``jupyter lab`` with nothing of the user's, and end it with its kernels.

    Args:
        home: An empty folder with a short path.
        env: What its environment has besides.
        command: Arguments of Python that start it in some other way, with notebooks in the folder.
    """
    folder = home / "notebooks"
    folder.mkdir()
    command = command or ("-m", "jupyterlab", f"--ServerApp.root_dir={folder}")
    _write_json(home / "config" / "jupyter_server_config.json", CONFIG)
    for name, values in SETTINGS.items():
        _write_json(home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings", values)
    write_kernelspec(home / "data")
    own = {
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    process = subprocess.Popen(
        [sys.executable, *command],
        env=server_env(home)
        | {name: str(home / place) for name, place in own.items()}
        # What its libraries warn of is theirs.
        | {"PYTHONWARNINGS": "ignore"}
        | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
    )
    log = _Log(process)
    try:
        yield LabServer(process.pid, log.wait_for_url(), home, folder)
    finally:
        process.terminate()
        try:
            process.wait(TIMEOUT)
        finally:
            process.kill()
            log.close()


class _Log:
    """What a server says, read by a thread of its own to the end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._urls: Queue[str | None] = Queue()
        self._thread = Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            # The address is said again when the server listens.
            if found := re.search(r"(http://127\.0\.0\.1:\d+/)lab\S*\?token=", line):
                self._urls.put(found[1])
        self._urls.put(None)

    def wait_for_url(self) -> str:
        """Return the address once the server listens there."""
        url = self._urls.get(timeout=3 * TIMEOUT)
        assert url is not None, "".join(["the server ended:\n", *self._lines])
        return url

    def close(self) -> None:
        """Wait for the end of what an ended server said."""
        self._thread.join(TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")
