"""What is known against copies of a process that has loaded certain libraries."""

from types import SimpleNamespace

import pytest

from mcp_notebook.kernel.fork.fork_safety import find_danger_in_copy, find_fork_danger


def torch(*, has_cuda):
    return SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: has_cuda))


@pytest.mark.parametrize("name", ["cupy", "jax", "polars", "tensorflow"])
def test_a_library_that_does_not_work_in_a_copy_is_named(name):
    assert name in find_fork_danger({name: object()})


def test_torch_is_in_the_way_once_it_uses_the_gpu():
    assert find_fork_danger({"torch": torch(has_cuda=False)}) is None
    assert "GPU" in find_fork_danger({"torch": torch(has_cuda=True)})


def test_cuda_is_in_the_way_whichever_library_uses_it(tmp_path):
    (tmp_path / "4").symlink_to("/dev/null")
    assert find_danger_in_copy(tmp_path) is None
    assert find_danger_in_copy(tmp_path / "missing") is None
    (tmp_path / "5").symlink_to("/dev/nvidia-uvm")
    assert "GPU (CUDA)" in find_danger_in_copy(tmp_path)


def test_a_module_of_the_same_name_that_is_not_the_library_is_not_in_the_way():
    assert find_fork_danger({"torch": object()}) is None
    assert find_fork_danger({}) is None


def test_openblas_is_in_the_way_where_no_fork_is_safe_from_it(monkeypatch):
    config = SimpleNamespace(CONFIG={"Build Dependencies": {"blas": {"name": "scipy-openblas"}}})
    numpy = SimpleNamespace(__config__=config)
    safety = "mcp_notebook.kernel.fork.fork_safety.has_raw_fork"
    monkeypatch.setattr(safety, lambda: False)
    assert "OpenBLAS" in find_fork_danger({"numpy": numpy})
    monkeypatch.setattr(safety, lambda: True)
    assert find_fork_danger({"numpy": numpy}) is None
