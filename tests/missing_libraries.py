"""A test that is skipped for a missing library: in CI a failure, but for those in no extra."""

import os
import re

import pytest

OUTSIDE_THE_EXTRAS = frozenset(
    {"Bio", "cairosvg", "duckdb", "executorlib", "geopandas", "holoviews", "ipympl"}
    | {"ipyparallel", "kaleido", "lets_plot", "msgspec", "panel", "rdkit", "resource"}
    | {"scipy", "sklearn", "sqlalchemy", "statsmodels", "zarr"}
)
"""Libraries that `pip install .[test]` does not bring: kaleido needs Chrome, cairosvg the cairo
library, resource is there on POSIX only, and the others are hundreds of megabytes for a test or
two each. A skip names what was not run; `.ci/run` installs executorlib and ipyparallel for the slow
tests, and `.ci/other-libraries` what it can of the others."""


def _fail_if_declared(report):
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    missing = re.search(r"could not import '(\w+)", reason)
    if missing and missing[1] not in OUTSIDE_THE_EXTRAS:
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason}: CI has what the extra `test` declares."


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
