"""Ids of tasks begin with what a model can read, and say which kernel to ask."""

import pytest

from mcp_notebook.wire import task_ids


@pytest.mark.parametrize("tool", ["plot_rain", "a-b-c", "..", "x" * 64])
def test_an_id_begins_with_the_tool_and_names_the_kernel(tool):
    task_id = task_ids.make_id(tool, "ab12")
    assert task_id.startswith(f"{tool}-")
    assert task_ids.find_kernel_id(task_id) == "ab12"


@pytest.mark.parametrize(
    "text", ["", "-", "--", "a--b", "a-b-c", "x-y-", f"a-b-{'c' * 33}", "plain"]
)
def test_other_texts_name_no_kernel(text):
    assert task_ids.find_kernel_id(text) is None
