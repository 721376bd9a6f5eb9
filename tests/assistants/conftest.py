"""What the tests with real assistants share: their packages, and who runs which tests."""

from pathlib import Path

import pytest
from npm_packages import CannotInstall, bring_in
from scheduling import ByConversation


@pytest.fixture(scope="session")
def modules() -> Path:
    """The assistants and their Node."""
    try:
        return bring_in(Path(__file__).parent)
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


def pytest_xdist_make_scheduler(config, log):
    """Take effect where pytest is given this folder."""
    return ByConversation(config, log)
