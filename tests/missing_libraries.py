"""Tests that are skipped for a missing library; where all were to be there, they fail.

A test of a library in the extra `test-libraries` has the mark ``pytest.mark.needs("polars")``. One
of a library in no extra calls ``pytest.importorskip``.
"""

import os
import re
from importlib.util import find_spec

import pytest

OUTSIDE_THE_EXTRAS = frozenset(
    {"duckdb", "geopandas", "ipympl"}
    | {"ipyparallel", "kaleido", "resource"}
    | {"sqlalchemy", "zarr"}
)
"""Libraries that no extra brings: kaleido needs Chrome, resource is
there on POSIX only, and the others are hundreds of megabytes for a test or two each. A skip names
what was not run; `.ci/run` installs ipyparallel for the slow tests, and
`.ci/other-libraries` what it can of the others."""


def pytest_runtest_setup(item):
    """Skip a test whose mark `needs` names a missing library; fail it with ``-m needs``."""
    names = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        says = f"needs {', '.join(missing)}: pip install -e '.[test-libraries]'"
        (pytest.fail if "needs" in item.config.option.markexpr else pytest.skip)(says)


def _fail_if_declared(report):
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    missing = re.search(r"could not import '(\w+)", reason)
    if missing and missing[1] not in OUTSIDE_THE_EXTRAS:
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason}: CI has what the extras declare."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Look at the report of a test."""
    report = yield
    if os.environ.get("CI"):
        _fail_if_declared(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Look at the report of a module that skips itself as a whole."""
    report = yield
    if os.environ.get("CI"):
        _fail_if_declared(report)
    return report
