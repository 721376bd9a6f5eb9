import os
import subprocess
import sys

import psutil
import pytest

from mcp_notebook.bridge.headless.machine_limits import (
    allow_open_files,
    find_free_memory,
    measure_kernel,
)


def test_a_process_has_memory_of_its_own_until_it_has_ended():
    assert 10**6 < measure_kernel(os.getpid()) < 10**11
    assert measure_kernel(2**22 + 1) == 0


@pytest.mark.parametrize(
    ("most", "used", "files", "free"),
    [("3000", "1000", "0", 2000), ("3000", "2500", "400", 900), ("1000", "3000", "0", 0)],
)
def test_a_container_has_what_its_limit_leaves(tmp_path, most, used, files, free):
    (tmp_path / "memory.max").write_text(f"{most}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    (tmp_path / "memory.stat").write_text(f"anon 7\ninactive_file {files}\nactive_file 9\n")
    assert find_free_memory(tmp_path) == free


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_the_limit_of_open_files_is_raised_for_as_many_kernels_as_it_may_be():
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = psutil.Process().num_fds() + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        assert allow_open_files(5) == 5
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > low + 5 * 24
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))\n"
        "from mcp_notebook.bridge.headless.machine_limits import allow_open_files\n"
        "print(allow_open_files(2), 5 < allow_open_files(1_000) < 15)"
    )
    said = subprocess.run([sys.executable, "-c", limited], capture_output=True, check=True)
    assert said.stdout.split() == [b"2", b"True"]
