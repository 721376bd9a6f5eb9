"""What one result may take."""

import pytest

from mcp_notebook.kernel.results.blocks.budget import Budget, NoRenderer, NotDrawn


def test_a_budget_without_a_renderer_draws_nothing():
    with pytest.raises(NotDrawn):
        Budget().renderer.draw("plotly", "{}")
    assert NoRenderer.seconds == 0
