"""What the conformance tests share: the programs from npm."""

import pytest
from npm import Programs, programs


@pytest.fixture(scope="session")
def npm_programs() -> Programs:
    """The suite and the Inspector, ready to run."""
    return programs()
