import pytest

from mcp_notebook.wire import resource_uris


@pytest.mark.parametrize("uri", ["", "notebook:", "notebook://", "notebook:///a", "file://k/a"])
def test_only_uris_of_ours_name_a_kernel(uri):
    assert resource_uris.find_kernel_id(uri) is None
    assert resource_uris.find_kernel_id(resource_uris.make_prefix("k") + "1/a") == "k"
