"""The public interface, pinned: adding a name is a decision."""

import subprocess
import sys

import pytest

import mcp_notebook

PUBLIC = {
    "Audio",
    "CannotElicit",
    "Columns",
    "Context",
    "Header",
    "Hidden",
    "Icon",
    "Image",
    "Message",
    "PublicUrl",
    "Resource",
    "ResourceLink",
    "Result",
    "Secret",
    "SharedPath",
    "Text",
    "Tool",
    "ToolError",
    "__version__",
    "load_ipython_extension",
    "mcp_prompt",
    "mcp_resource",
    "mcp_skill",
    "mcp_tool",
    "mcp_tools",
    "registry",
    "resource_changed",
    "unload_ipython_extension",
}


def test_the_public_names_are_these_and_no_others():
    assert set(mcp_notebook.__all__) == PUBLIC
    assert list(mcp_notebook.__all__) == sorted(mcp_notebook.__all__)


def test_each_public_name_exists():
    for name in mcp_notebook.__all__:
        assert getattr(mcp_notebook, name) is not None, name


def test_completion_offers_the_public_names():
    assert set(dir(mcp_notebook)) == PUBLIC


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(mcp_notebook, "no_such_name")


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["IPython", "ipykernel", "pydantic", "uvicorn", "rich", "typer"]
    code = f"import sys, mcp_notebook; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["", "gc.disable();"])
def test_loading_the_extension_leaves_the_garbage_collector_as_it_was(change):
    code = f"import gc, mcp_notebook; {change} was = gc.isenabled();"
    code += "mcp_notebook.load_ipython_extension; assert gc.isenabled() is was"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_that_use_public_names_do_not_touch_the_garbage_collector():
    # Each would restore the state that another has set for a moment, and leave it disabled.
    code = "import gc, mcp_notebook; mcp_notebook.load_ipython_extension; gc.disable = None;"
    code += "mcp_notebook.load_ipython_extension; mcp_notebook.ToolError; mcp_notebook.mcp_tool"
    subprocess.run([sys.executable, "-c", code], check=True)
