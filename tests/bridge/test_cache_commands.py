"""``mcp-notebook cache``: with a notebook of its own, that loads the extension."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from mcp_notebook.cli.cache_commands import clear_cache, warm_cache
from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked_kernels")]

TOOL = '%%mcp_tool\ndef add(a: int, b: int = 2):\n    "Add."\n    return a + b'


async def test_schemas_are_kept_used_again_and_removed(home, capsys):
    path = home / "sums.ipynb"
    nbformat.write(
        new_notebook(cells=[new_code_cell("%load_ext mcp_notebook"), new_code_cell(TOOL)]), path
    )
    settings = Settings(home=home / ".mcp-notebook")
    folder = settings.schemas_folder
    await warm_cache(settings, [path])
    assert capsys.readouterr().out == f"1 new schema, 1 in all, in {folder}\n"
    await warm_cache(settings, [path])
    assert capsys.readouterr().out == f"0 new schemas, 1 in all, in {folder}\n"
    await clear_cache(settings)
    assert capsys.readouterr().out.startswith("1 schema removed")
    assert list(folder.iterdir()) == []


async def test_nothing_is_run_where_nothing_is_kept(home):
    with pytest.raises(SettingsError, match="MCP_NOTEBOOK_SCHEMA_CACHE"):
        await warm_cache(Settings(home=home, schema_cache=False), [home / "none.ipynb"])
