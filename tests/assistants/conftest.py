"""What the tests with real assistants share: their packages, and who runs which tests."""

from pathlib import Path

import pytest
from npm_packages import CannotInstall, bring_in
from xdist.scheduler import LoadFileScheduling


@pytest.fixture(scope="session")
def modules() -> Path:
    """The assistants and their Node."""
    try:
        return bring_in(Path(__file__).parent)
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


class _ByAssistant(LoadFileScheduling):
    """Gives all tests of an assistant to one worker, as those of a file."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, assistant = nodeid.partition("[")
        return assistant or super()._split_scope(file)


def pytest_xdist_make_scheduler(config, log):
    """Take effect where pytest is given this folder."""
    return _ByAssistant(config, log)
