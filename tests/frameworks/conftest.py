"""How the tests with real frameworks are shared out."""

from scheduling import ByConversation


def pytest_xdist_make_scheduler(config, log):
    """Take effect where pytest is given this folder."""
    return ByConversation(config, log)
