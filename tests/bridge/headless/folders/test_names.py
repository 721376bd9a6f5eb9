"""A notebook's name depends on its path alone, and no two paths have the same."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook.bridge.headless.folders.names import make_name
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.wire.messages import ToolInfo

ROOT = Path("/data/nb")
_PARTS = st.text(st.sampled_from("ab_-. é"), min_size=1, max_size=3).filter(
    lambda part: part[0] != "."
)
_PATHS = st.lists(_PARTS, min_size=1, max_size=8).map(lambda parts: "/".join(parts) + ".ipynb")
"""Paths that are alike."""


def _name(path, folder=ROOT, *others, taken=()):
    return make_name(folder / path, folder, [folder, *others], taken)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("sales.ipynb", "sales"),
        ("first_look.ipynb", "first_look"),
        ("q1-report_v2.ipynb", "q1-report_v2"),
        ("reports/sales.ipynb", "reports--sales"),
        ("a/b/c_d.ipynb", "a--b--c_d"),
        ("exactly-twenty-four-long.ipynb", "exactly-twenty-four-long"),
    ],
)
def test_a_plain_path_is_the_name(path, name):
    assert _name(path) == name


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("team_b_quarterly_reports_x/sales.ipynb", "sales"),
        ("projects/2024/reports/sales.ipynb", "sales"),
        ("projects/2024/q1/sales.ipynb", "q1--sales"),
        (f"{'x' * 40}.ipynb", "x" * 13),
        ("Sales report.ipynb", "Sales_report"),
        ("Part 1/02 - Train a model.ipynb", "02_Train_a"),
        ("part_1/lesson_02_training.ipynb", "lesson_02"),
        ("Umsätze.ipynb", "Umsatze"),
        ("売上.ipynb", "notebook"),
        ("sales.private.ipynb", "sales_private"),
        ("sales.d/top.ipynb", "sales_d--top"),
        ("a--b.ipynb", "a--b"),
        ("a-/b.ipynb", "a---b"),
        ("_private.ipynb", "private"),
        ("sales.IPYNB", "sales"),
        ("sales-0a1b2c3d4e.ipynb", "sales-0a1b2c3"),
    ],
)
def test_any_other_ends_in_a_hash(path, start):
    name = _name(path)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,24}", name)
    found = re.fullmatch(r"(.+)-[0-9a-f]{10}", name)
    assert found
    assert found[1] == start


@example([f"team_{team}_quarterly_reports_x/sales.ipynb" for team in "ab"])
@example(["a/b.ipynb", "a_b.ipynb", "a--b.ipynb", "a b.ipynb", "a-b.ipynb", "a/b.IPYNB"])
@given(st.lists(_PATHS, unique=True, max_size=8))
def test_no_two_paths_have_the_same_name_and_the_catalogue_changes_none(paths):
    catalog = Catalog()
    tool = ToolInfo(name="top", input_schema={})
    for path in paths:
        catalog.set_kernel(path, notebook=_name(path), tools=[tool])
    served = {entry.kernel_id: entry.notebook for entry in catalog.entries()}
    assert served == {path: _name(path) for path in paths}


def test_of_several_folders_the_names_begin_with_theirs():
    other = Path("/elsewhere/other")
    assert _name("a/b.ipynb", ROOT, other) == "nb--a--b"
    assert _name("a/b.ipynb", other, ROOT) == "other--a--b"


def test_folders_of_the_same_name_are_told_apart_by_their_places():
    other = Path("/elsewhere/nb")
    names = [_name("a.ipynb", ROOT, other), _name("a.ipynb", other, ROOT)]
    assert all(re.fullmatch("nb--a-[0-9a-f]{10}", name) for name in names)
    assert len(set(names)) == 2


def test_a_name_of_a_notebook_beside_the_folders_gets_a_hash_wherever_that_one_is():
    taken = ["sales", "sales-2"]
    for path in ("sales.ipynb", "sales-2.ipynb"):
        start = path.removesuffix(".ipynb")
        assert re.fullmatch(f"{start}-[0-9a-f]{{10}}", _name(path, taken=taken))
    assert _name("sales-3.ipynb", taken=taken) == "sales-3"
