"""Which live kernels a Jupyter Server's bridge serves."""

import json

import anyio
import pytest
from kernel_records import make_record
from live import TIMEOUT

from mcp_notebook.bridge.jupyter.server_kernels import ServerKernels, is_of_notebook
from mcp_notebook.discovery.records import write_record


@pytest.mark.anyio
async def test_kernels_are_served_from_when_both_the_server_and_their_record_name_them(home):
    mine, other, nameless = make_record("mine"), make_record("other"), make_record()
    for record in (mine, other, nameless):
        write_record(home, record)
    kernels = ServerKernels(home)
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kernels.watch_folder)
            kernels.take_line(json.dumps(["mine", "of another machine"]))
            served = kernels.watch(lambda record: True)  # noqa: ARG005
            assert await anext(served) == (mine,)
            kernels.take_line(json.dumps(["mine", "other"]))
            while set(await anext(served)) != {mine, other}:
                pass
            late = make_record("other")
            write_record(home, late)
            while set(await anext(served)) != {mine, other, late}:
                pass
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("asked", "is_meant"),
    [
        ("sales", True),
        ("sales.ipynb", True),
        ("2024/sales", True),
        ("2024/sales.ipynb", True),
        ("2023/sales", False),
        ("ales", False),
        (".ipynb", False),
        ("../sales", False),
    ],
)
def test_a_notebook_is_meant_by_its_name_or_the_last_parts_of_its_path(asked, is_meant):
    assert is_of_notebook(make_record(notebook="/home/ada/2024/sales.ipynb"), asked) == is_meant


def test_a_kernel_without_a_file_is_meant_by_the_name_that_it_has():
    assert is_of_notebook(make_record(name="kernel-7"), "kernel-7")


@pytest.mark.parametrize("path", ["/", ".", "..", "a/b.ipynb/"])
def test_a_path_that_no_notebook_has_does_no_harm(path):
    assert not is_of_notebook(make_record(notebook=path), "rain")
