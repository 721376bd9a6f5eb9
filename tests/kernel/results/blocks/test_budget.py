"""What one result may take."""

import pytest

from mcp_notebook.kernel.results.blocks.budget import Budget, NoRenderer, NotDrawn
from mcp_notebook.settings.settings import Settings


def test_a_tool_may_have_characters_of_its_own():
    settings = Settings(max_result_chars=5_000)
    assert Budget.from_settings(settings).chars == 5_000
    assert Budget.from_settings(settings, chars=9).chars == 9


def test_a_budget_without_a_renderer_draws_nothing():
    with pytest.raises(NotDrawn):
        Budget.from_settings(Settings()).renderer.draw("plotly", "{}")
    assert NoRenderer.seconds == 0
