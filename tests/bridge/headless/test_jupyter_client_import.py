import subprocess
import sys

import ipykernel
import pytest


@pytest.mark.skipif(ipykernel.version_info[0] < 7, reason="ipykernel 6 needs IPython for that")
def test_kernels_are_found_without_ipython_which_can_be_imported_afterwards():
    code = (
        "import sys, mcp_notebook.bridge.headless.kernel_process as kernel_process, pathlib;"
        "kernel_process.check_kernel_name('python3', pathlib.Path('sums.ipynb'));"
        "print('IPython.core' in sys.modules);"
        "from IPython import get_ipython; from ipykernel import version_info;"
        "print(get_ipython(), version_info[0] >= 6)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\nNone True\n"
