"""The hash of a tool's source: equal for equal code, different for any other."""

import functools

import pytest

from mcp_notebook.kernel.tools.source_hash import hash_source


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


class Model:
    def predict(self, x):
        return x


def test_equal_code_has_an_equal_hash_and_other_code_another():
    assert hash_source(double) == hash_source(double)
    assert len({hash_source(double), hash_source(triple)}) == 2


def test_a_method_has_the_hash_of_its_function_and_a_wrapper_that_of_what_it_wraps():
    assert hash_source(Model().predict) == hash_source(Model.predict)
    assert hash_source(functools.cache(double)) == hash_source(double)


# Not "<string>", by which Python 3.13 knows what `python -c` runs, as pytest's workers do.
UNKNOWN = eval(compile("lambda: 1", "<nowhere>", "eval"))


@pytest.mark.parametrize("function", [len, functools.partial(double, 1), UNKNOWN])
def test_what_has_no_source_has_no_hash(function):
    assert hash_source(function) is None


def test_a_cell_that_is_a_tool_is_hashed_as_a_whole(shared_kernel):
    cell = "%%mcp_tool area(r: float)\nimport math\n\nmath.pi * r ** {}\n"
    show = "print(get_ipython()._mcp_notebook.registry.get('area').source_hash)"
    hashes = []
    for power in (2, 3, 2):
        shared_kernel.ok(cell.format(power))
        hashes.append(shared_kernel.ok(show).stdout)
    assert hashes[0] == hashes[2] != hashes[1]
    assert len(hashes[0].strip()) == 64
