"""What the tests with real assistants share: their packages."""

from pathlib import Path

import pytest
from npm_packages import CannotInstall, bring_in


@pytest.fixture(scope="session")
def modules() -> Path:
    """The assistants and their Node."""
    try:
        return bring_in(Path(__file__).parent)
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)
