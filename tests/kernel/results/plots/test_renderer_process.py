"""The program that draws one plot, started as the kernel starts it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_notebook.kernel.results.plots import renderer_process

PROGRAM = Path(renderer_process.__file__)


def run(library, **request):
    return subprocess.run(
        [sys.executable, str(PROGRAM), library, "30"],
        input=json.dumps(request).encode(),
        capture_output=True,
        check=False,
    )


@pytest.mark.needs("vl_convert")
def test_the_picture_is_all_of_standard_output():
    pytest.importorskip("vl_convert")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    process = run("vl_convert_svg", source=svg, scale=1.0)
    assert process.returncode == 0
    assert process.stdout.startswith(b"\x89PNG")
    assert process.stdout.rstrip().endswith(b"IEND\xaeB`\x82")


@pytest.mark.needs("vl_convert")
def test_a_failure_is_the_last_line_of_standard_error():
    pytest.importorskip("vl_convert")
    process = run("vl_convert_svg", source="not an SVG", scale=1.0)
    assert process.returncode == 1
    assert process.stdout == b""
    assert "Error: " in process.stderr.decode().splitlines()[-1]


def test_the_program_loads_nothing_of_this_package():
    run = f"runpy.run_path({str(PROGRAM)!r}, run_name='x')"
    code = f"import runpy, sys; {run}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = out.stdout.split()
    assert not {"mcp_notebook", "pydantic", "IPython"} & set(loaded)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="without alarms")
def test_a_process_whose_kernel_was_killed_ends_by_itself():
    folder = PROGRAM.parent
    code = f"import sys; sys.argv[1:] = ['hang', '1']; sys.path.insert(0, {str(folder)!r})\n"
    code += "import renderer_process\n"
    # Holds Python's lock all the while.
    code += "import re\n"
    code += "renderer_process._LIBRARIES['hang'] = lambda source: re.match('(a*)*b', 'a' * 60)\n"
    code += "renderer_process.main()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    child.communicate(b'{"source": ""}', timeout=20)
    assert child.returncode == -signal.SIGALRM
