import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from live import kernel_env, live_kernel, until, wait_for_ends
from msgspec import structs

from mcp_notebook.discovery.records import BridgeRecord, read_bridge, read_start_time
from mcp_notebook.errors import BridgeError
from mcp_notebook.kernel.notebook import background_bridge
from mcp_notebook.settings.private_files import write_private, write_private_json
from mcp_notebook.settings.settings import Settings

TOKEN = "token-of-the-tests-0123456789abcdef"
STARTER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from mcp_notebook.kernel.notebook import background_bridge\n"
    "from mcp_notebook.settings.settings import Settings\n"
    "print(background_bridge.start_bridge(Settings(home=Path(sys.argv[1]), port=0)).pid)\n"
)


@pytest.fixture
def settings(home, monkeypatch):
    """Settings of a home of its own; a bridge that a test leaves there is ended."""
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    settings = Settings(home=home / "state", port=0)
    yield settings
    background_bridge.stop_bridge(settings)


@dataclass
class Running:
    """A background bridge that runs."""

    settings: Settings
    record: BridgeRecord
    process: psutil.Process
    secret: Path
    """A file that was open, and to be inherited, where the bridge was started."""


@pytest.fixture(scope="module")
def running(module_home):
    """A bridge that several tests look at, started in a folder as untidy as a notebook's may be."""
    settings = Settings(home=module_home / "state", port=0, token=TOKEN, idle_minutes=3)
    for name in ("mcp_notebook", "anyio", "subprocess"):
        hiding = module_home / f"{name}.py"
        hiding.write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    write_private(settings.home / "bridge.log", "x" * (2**20 + 1))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in kernel_env(module_home).items():
            patch.setenv(name, value)
        patch.chdir(module_home)
        with (module_home / "secret").open("w") as file:
            os.set_inheritable(file.fileno(), True)
            record = background_bridge.start_bridge(settings)
    yield Running(settings, record, psutil.Process(record.pid), Path(file.name))
    background_bridge.stop_bridge(settings)


def _status(url):
    """Return the HTTP status of a request without a token."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_nothing_is_found_or_stopped_where_nothing_runs(settings):
    assert background_bridge.find_bridge(settings) is None
    assert background_bridge.stop_bridge(settings) is False


@pytest.mark.slow  # the magics do the same below
def test_the_bridge_that_is_started_is_found_answers_and_can_be_stopped(settings):
    record = background_bridge.start_bridge(settings)
    assert background_bridge.find_bridge(settings) == record
    assert _status(record.url) == 401
    assert background_bridge.stop_bridge(settings) is True
    assert background_bridge.find_bridge(settings) is None
    assert not settings.bridge_file.exists()
    assert read_start_time(record.pid) is None


def test_a_bridge_that_runs_is_not_started_again(running):
    assert background_bridge.start_bridge(running.settings) == running.record


@pytest.mark.skipif(sys.platform == "win32", reason="sessions and process groups")
def test_the_bridge_is_out_of_reach_of_what_ends_or_interrupts_the_kernel(running):
    pid = running.record.pid
    assert os.getsid(pid) != os.getsid(0)
    assert os.getpgid(pid) != os.getpgid(0)
    assert pid not in {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_bridge_inherits_nothing_but_its_log(running):
    assert str(running.secret) not in {opened.path for opened in running.process.open_files()}
    descriptors = Path(f"/proc/{running.record.pid}/fd")
    assert (descriptors / "0").readlink() == Path(os.devnull)
    for stream in ("1", "2"):
        assert (descriptors / stream).readlink() == running.settings.home / "bridge.log"


def test_token_and_settings_reach_the_bridge_and_the_token_is_not_in_its_arguments(running):
    assert TOKEN not in " ".join(running.process.cmdline())
    assert running.process.environ()["MCP_NOTEBOOK_TOKEN"] == TOKEN
    assert running.process.environ()["MCP_NOTEBOOK_IDLE_MINUTES"] == "3"


def test_a_long_log_is_put_aside(running):
    log = running.settings.home / "bridge.log"
    assert log.stat().st_size < 2**20
    assert log.with_suffix(".log.1").stat().st_size > 2**20


def test_modules_in_the_notebooks_folder_do_not_hide_those_of_the_bridge(running):
    assert (running.settings.home.parent / "mcp_notebook.py").exists()
    assert _status(running.record.url) == 401


@pytest.mark.slow
def test_notebooks_that_start_it_at_once_end_with_one_bridge(settings):
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, settings.home], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = {starter.communicate(timeout=100)[0] for starter in starters}
    running = background_bridge.find_bridge(settings)
    assert running is not None
    assert said == {f"{running.pid}\n"}


@pytest.mark.slow
def test_a_bridge_that_cannot_start_is_told_with_what_it_said(settings):
    settings.token_path.parent.mkdir(parents=True)
    settings.token_path.mkdir()  # no file: the bridge cannot read its token
    with pytest.raises(BridgeError) as caught:
        background_bridge.start_bridge(settings)
    assert "exited while starting" in str(caught.value)
    assert str(settings.token_path) in str(caught.value)
    assert "mcp-notebook serve" in str(caught.value)
    settings.token_path.rmdir()


def test_a_bridge_that_takes_too_long_is_told_and_ended(settings):
    with pytest.raises(BridgeError, match=r"did not start within 0\.05 s|timed out"):
        background_bridge.start_bridge(replace(settings, start_timeout=0.05))
    assert background_bridge.find_bridge(settings) is None
    wait_for_ends(_list_processes(settings.home.parent))


def _list_processes(home):
    """Return the ids of the processes that were started with this home folder."""
    pids = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                pids.append(process.pid)
    return pids


@pytest.mark.skipif(sys.platform == "win32", reason="the starter's session is ended")
def test_a_bridge_whose_starter_hangs_is_ended_with_it(settings, home, monkeypatch):
    begun = home / "begun"
    monkeypatch.setattr(
        background_bridge,
        "_SPAWN",
        "import pathlib, subprocess, sys, time\n"
        "bridge = subprocess.Popen(sys.argv[1:], stdout=2)\n"
        f"pathlib.Path({str(begun)!r}).write_text(str(bridge.pid))\n"
        "time.sleep(600)",
    )
    monkeypatch.setattr(subprocess.Popen, "communicate", _interrupt_once(begun))
    with pytest.raises(KeyboardInterrupt):
        background_bridge.start_bridge(settings)
    wait_for_ends([int(begun.read_text()), *_list_processes(home)])


def _interrupt_once(begun):
    """Return what interrupts the user's cell once the bridge's process runs."""

    def communicate(_process, **_options):
        until(lambda: begun.exists() and begun.read_text())
        raise KeyboardInterrupt

    return communicate


def _older(settings, record):
    """Make a bridge's record say that an older version wrote it."""
    older = structs.replace(record, version="0.0.1")
    write_private_json(settings.bridge_file, older)


@pytest.mark.slow
def test_a_bridge_of_an_older_version_is_replaced_and_that_is_said(settings, caplog):
    first = background_bridge.start_bridge(settings)
    _older(settings, first)
    second = background_bridge.start_bridge(settings)
    assert read_start_time(first.pid) is None
    assert read_bridge(settings.bridge_file) == second
    assert "version 0.0.1 by version" in caplog.text


def test_a_bridge_of_a_newer_version_is_left_alone(running):
    newer = structs.replace(running.record, version="999.0")
    write_private_json(running.settings.bridge_file, newer)
    try:
        assert background_bridge.start_bridge(running.settings).pid == running.record.pid
    finally:
        write_private_json(running.settings.bridge_file, running.record)


def test_a_process_that_only_has_the_number_of_a_dead_bridge_is_not_touched(settings):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        stale = BridgeRecord(
            pid=other.pid, started=1.0, version="0.1.0", url="http://127.0.0.1/mcp"
        )
        write_private_json(settings.bridge_file, stale)
        assert background_bridge.stop_bridge(settings) is False
        assert other.poll() is None


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM cannot be ignored there")
def test_a_bridge_that_does_not_listen_to_sigterm_is_killed(settings):
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); "
    with subprocess.Popen(
        [sys.executable, "-c", f"{ignore}input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as deaf:
        deaf.stdout.readline()
        started = read_start_time(deaf.pid)
        record = BridgeRecord(pid=deaf.pid, started=started, version="0.1.0", url="http://x/mcp")
        write_private_json(settings.bridge_file, record)
        assert background_bridge.stop_bridge(settings, grace=0.2) is True
        assert deaf.wait(60) == -9


@pytest.mark.smoke
def test_the_magics_serve_and_stop_and_the_bridge_outlives_the_kernel(home, monkeypatch):
    for name, value in kernel_env(home).items():
        monkeypatch.setenv(name, value)
    settings = Settings(home=home / ".mcp-notebook")
    with live_kernel(home) as kernel, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_private(settings.home / "port", str(port))
        kernel.ok("%load_ext mcp_notebook")
        said = kernel.ok("%mcp serve").text
        assert "http://127.0.0.1:" in said
        assert "\n  mcp-notebook install claude-code --http\n" in said
        assert f"\nNote: Port {port} is in use by another process of yours" in said
        record = background_bridge.find_bridge(settings)
        kernel.manager.interrupt_kernel()
    try:
        assert background_bridge.find_bridge(settings) == record
    finally:
        assert background_bridge.stop_bridge(settings)
