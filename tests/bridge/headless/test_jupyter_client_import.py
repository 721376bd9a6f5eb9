import subprocess
import sys

import ipykernel
import IPython
import pytest

IMPORT = "import sys, mcp_notebook.bridge.headless.kernel_process as kernel_process, pathlib;"


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(
    IPython.version_info[:2] < (9, 16) or ipykernel.version_info[0] < 7,
    reason="older ones are imported whole",
)
def test_kernels_are_found_without_ipython_which_can_be_imported_afterwards():
    code = (
        f"{IMPORT}kernel_process.choose_kernel('python3', pathlib.Path('sums.ipynb'));"
        "print('IPython.core' in sys.modules);"
        "from IPython import get_ipython; from ipykernel import version_info;"
        "print(get_ipython(), version_info[0] >= 6)"
    )
    assert run_python(code) == "False\nNone True\n"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["core.interactiveshell", "core.magic", "display"])
def test_any_module_of_ipython_can_be_imported_first(module):
    code = f"{IMPORT}import IPython.{module}; print(IPython.get_ipython(), IPython.embed.__name__)"
    assert run_python(code) == "None embed\n"
