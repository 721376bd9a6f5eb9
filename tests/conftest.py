"""What every test may use."""

import gc
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import forked_command
import hypothesis
import pytest
from live import Link, live_kernel, record_of

import mcp_notebook.bridge.headless.jsonschema_import  # noqa: F401 - before a test imports nbformat
from mcp_notebook.settings.settings import Settings

pytest_plugins = ["missing_libraries", "run_folder"]

# Other processes of the tests may take the time.
hypothesis.settings.register_profile(
    "tests", deadline=None, max_examples=10, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "fresh",
    hypothesis.settings.get_profile("tests"),
    database=None,
    max_examples=100,
    print_blob=True,
)
"""For .ci/before-release: examples that come from the seed alone."""
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("fresh"), derandomize=True, max_examples=30
)
hypothesis.settings.register_profile("few", hypothesis.settings.get_profile("ci"), max_examples=10)
"""For other Pythons and the lowest versions, where CI has run the many examples already."""
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "tests")

if sys.dont_write_bytecode:
    # The tests start some hundred processes: each would compile all that it imports, pandas in two
    # seconds. Theirs and ours is kept once, where nobody who wants no __pycache__ finds any.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def pytest_configure(config):
    """Let SIGINT reach the tests' programs, and start these in a fraction of the time."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A script's ``pytest &`` ignores it, and so would all that the tests start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    forked_command.are_forked = hasattr(os, "pidfd_open") and not config.getoption("--unforked")


def pytest_addoption(parser):
    parser.addoption(
        "--unforked",
        action="store_true",
        help="start all programs as users do: what is left out is in tests/forked_command.py",
    )


SLOW = (
    "tests/e2e/",
    "tests/jupyter/",
    "tests/cli/test_call.py",
    "tests/cli/test_main.py",
    "tests/check/test_examination.py",
    "tests/check/test_live.py",
    "tests/docs/test_code_blocks.py",
    "tests/bridge/headless/",
    "tests/bridge/transports/test_http_answers.py",
    "tests/bridge/transports/test_sequences.py",
    "tests/kernel/test_extension.py",
    "tests/test_notebooks.py",
    "tests/test_other_systems.py",
)
"""Whose tests start most processes or servers. All but the main features, `smoke`, are slow."""


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    """Mark what is slow, and have the long files run first."""
    for item in items:
        if item.nodeid.startswith(SLOW) and item.get_closest_marker("smoke") is None:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(("tests/browser/", "tests/vscode/")):
            item.add_marker(pytest.mark.timeout(600))  # a page may take minutes to open
    # A long file at the end would leave the other workers without work.
    items.sort(
        key=lambda item: not item.nodeid.startswith((*SLOW, "tests/browser/test_side_panel"))
    )


@pytest.fixture
def without_nohup():
    """Let SIGHUP reach this process and a test's programs, also where ``nohup`` runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    """Look for no garbage while modules are imported: hardly any is made."""
    gc.disable()


def pytest_collection_finish():
    """Let no test look for garbage among the modules and tests: they stay to the end."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """Print the sums of what tests recorded as properties: how many checks passed, say."""
    sums = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            # A test's properties are on each of its reports, of setup and teardown, too.
            if getattr(report, "when", None) == "call":
                for name, value in report.user_properties:
                    sums[name] += value
    if sums:
        terminalreporter.section("counts")
        for name, value in sums.items():
            terminalreporter.line(f"{value} {name}")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def kernel(home):
    """A kernel of the test's own with the extension loaded."""
    with live_kernel(home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        yield kernel


@pytest.fixture(scope="module")
def shared_kernel(module_home):
    """A kernel with the extension loaded that a module's tests share."""
    with live_kernel(module_home) as kernel:
        kernel.ok("%load_ext mcp_notebook")
        # %reset looks for garbage, among all that is imported, too: for a tenth of a second.
        kernel.ok("__import__('gc').freeze()")
        yield kernel


@pytest.fixture
def link(kernel):
    """Yield a link to the kernel of the test's module."""
    with Link(record_of(kernel)) as link:
        yield link


@pytest.fixture
def settings(home):
    """The settings of who has this home folder."""
    return Settings(home=home / ".mcp-notebook")


@pytest.fixture(params=["legacy", "auto"])
def era(request):
    """Each way in which a client may begin: by the handshake, or as of 2026-07-28."""
    return request.param


@pytest.fixture(scope="session")
def chromium():
    """The one browser of a worker."""
    from web_browser import launched_chromium  # noqa: PLC0415 - needs the extra `browser`

    with launched_chromium() as browser:
        yield browser
