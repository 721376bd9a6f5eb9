import pytest

from mcp_notebook.bridge.kernels.former_tools import MAX_NAMES, FormerTools
from mcp_notebook.discovery.departures import KEEP
from mcp_notebook.text.missing_tools import MissingTool


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def former(clock):
    return FormerTools(clock)


def explain(tool, reason="It left."):
    return MissingTool("sales", tool, reason, "Call again.")


def test_a_former_tool_is_explained_for_some_minutes(former, clock):
    former.remember("top", "k", explain("top"))
    clock.now += KEEP - 1
    assert former.find("top") == explain("top")
    assert former.find("other") is None
    clock.now += 1
    assert former.find("top") is None
    assert len(former) == 0


def test_the_oldest_names_are_forgotten_if_there_are_too_many(former):
    names = [f"t{number}" for number in range(MAX_NAMES + 2)]
    for name in names:
        former.remember(name, "k", explain(name))
    assert len(former) == MAX_NAMES
    assert [name for name in names if former.find(name) is None] == names[:2]


def test_how_a_kernel_ended_may_be_known_later(former):
    for name, kernel in (("top", "k"), ("sales.top", "k"), ("other", "l")):
        former.remember(name, kernel, explain(name[-5:]))
    former.explain_again("k", MissingTool("ignored", None, "It crashed.", "Restart it."))
    assert former.find("top") == MissingTool("sales", "top", "It crashed.", "Restart it.")
    assert former.find("other") == explain("other")
