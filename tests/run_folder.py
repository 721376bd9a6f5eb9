"""The folder of one run of the tests: all that tests and their programs leave lies in it.

It has the home folder and the temporary folder of all tests, so that none meets the developer's
own. At the end both have to be empty: what lives longer than its test is found here.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SHARED = "shared"
"""Has what many tests share: matplotlib's list of fonts, what jedi keeps of the modules that it has
parsed, sockets of the servers of `forked_command`."""
_LIMIT = 10.0
"""Seconds that the last programs have to remove their files."""
_CACHES = {
    "npm_config_cache": ".npm",
    "PIP_CACHE_DIR": ".cache/pip",
    "UV_CACHE_DIR": ".cache/uv",
}
"""Variables of installers, and the folders in the developer's home where they keep downloads."""
_SETTINGS = {
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
    "npm_config_userconfig": ".npmrc",
    "PYENV_ROOT": ".pyenv",
    "RUSTUP_HOME": ".rustup",
    "CARGO_HOME": ".cargo",
}
"""Variables of installers, and what they read in the developer's home, if it is there."""
_LEFT = pytest.StashKey[list[str]]()
_SEEN = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder, and have this process and all that it starts use it."""
    if hasattr(config, "workerinput"):
        return  # a process that runs tests has inherited all this
    home, before = Path.home(), dict(os.environ)
    for name, path in (_CACHES | _SETTINGS).items():
        if name in _CACHES or (home / path).exists():
            os.environ.setdefault(name, str(home / path))
    os.environ.setdefault("TESTS_DOWNLOADS", tempfile.gettempdir())
    # pytest keeps the folders of the last three runs, to be looked at.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    # A short name, as sockets live below it, whose paths are short.
    folder = Path(tempfile.mkdtemp(prefix="mcpnb-"))

    def end() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        # mutmut runs pytest several times in one process.
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = None

    config.add_cleanup(end)
    for name in ("home", "t", SHARED):
        (folder / name).mkdir()
    os.environ |= {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "t"),
        "TESTS_RUN": str(os.getpid()),
        "TESTS_SHARED": str(folder / SHARED),
        "IPYTHONDIR": str(folder / SHARED / "ipython"),
        "MPLCONFIGDIR": str(folder / SHARED / "matplotlib"),
        "XDG_CACHE_HOME": str(folder / SHARED / "cache"),
        "DASK_TEMPORARY_DIRECTORY": str(folder / SHARED),
    }
    tempfile.tempdir = None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note what lies there after a test that did not before: it or one beside it has made that."""
    seen = item.config.stash.setdefault(_SEEN, set())
    for path in _find_left():
        if path not in seen:
            seen.add(path)
            _note("seen", f"{path} {item.nodeid}")


@pytest.hookimpl(trylast=True)  # the processes that ran tests have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if something is left in its home folder or temporary folder."""
    if hasattr(session.config, "workerinput"):
        return
    deadline = time.monotonic() + _LIMIT
    while left := _find_left():
        for path in _note("removed").intersection(left):
            # A program that its test has ended was still writing there.
            shutil.rmtree(path, ignore_errors=True)
        if time.monotonic() > deadline:
            session.config.stash[_LEFT] = left
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        time.sleep(0.1)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what is left."""
    left = config.stash.get(_LEFT, [])
    if left:
        terminalreporter.section("left behind", red=True)
        terminalreporter.line("Tests have left these outside of their own folders:")
        for path in left:
            terminalreporter.line(path)
            for note in sorted(_note("seen")):
                if note.startswith(f"{path} "):
                    terminalreporter.line(f"  seen first after {note.removeprefix(path)[1:]}")


@contextmanager
def _make_home() -> Iterator[Path]:
    # Sockets live below it, and a socket's path is short: pytest's own folders are too deep.
    folder = Path(tempfile.mkdtemp(prefix="mcpnb-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    _note("removed", str(folder))


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty home folder."""
    with _make_home() as folder:
        yield folder


@pytest.fixture(scope="module")
def module_home() -> Iterator[Path]:
    """An empty home folder for a kernel that a module's tests share."""
    with _make_home() as folder:
        yield folder


def _note(name: str, *lines: str) -> set[str]:
    """Add lines to a file that all processes of the run share, and return its lines."""
    path = Path(os.environ["TESTS_SHARED"]) / name
    with path.open("a+", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.seek(0)
        return set(file.read().splitlines())


def _find_left() -> list[str]:
    folder = Path(os.environ["HOME"]).parent
    return sorted(str(path) for name in ("home", "t") for path in (folder / name).iterdir())
