"""MCP's own conformance suite against a notebook whose tools are those that it asks for.

Each scenario is run in each version of the protocol that it is for, against one bridge, and each of
its checks must pass; `scenarios.toml` names the scenarios that are not applicable, with a reason.
One process of the suite runs all scenarios of a version, also those, whose checks are passed over:
to start a process for each would take ten times as long.
"""

import json
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clients import TOKEN, http_bridge
from npm import LIMIT
from proxy import adding

HERE = Path(__file__).parent
SCENARIOS = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))
RUNS = [(name, version) for name, versions in SCENARIOS["run"].items() for version in versions]
PASSED = {"SUCCESS", "INFO"}
FORCED = ["--spec-version", "2026-07-28", "--force"]
"""For scenarios of extensions, which belong to no version."""

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(LIMIT)]


@pytest.fixture(scope="module")
def url(module_home):
    """The address of the suite's notebook, for a client that has no token."""
    with (
        http_bridge(
            module_home,
            *[str(HERE / name) for name in ("conformance.ipynb", "crash.ipynb")],
            env={"MCP_NOTEBOOK_TASK_AFTER": "0.5"},
        ) as served,
        adding(f"Authorization: Bearer {TOKEN}", served.url) as url,
    ):
        yield url


@pytest.fixture(scope="module")
def runs(url, npm_programs, tmp_path_factory):
    """What runs of the suite end with: its folder and what it printed, by version.

    Scenarios of extensions, most of which wait for tasks, have a run for each. Three runs go on at
    any time.
    """

    def run(folder, arguments):
        command = [*npm_programs.conformance, "server", "--url", url, "--output-dir", str(folder)]
        said = subprocess.run(
            [*command, *arguments],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
        ).stdout
        return folder, said

    versions = {version for _, version in RUNS} - {"extension"}
    arguments = {
        (None, version): ["--suite", "all", "--spec-version", version] for version in versions
    } | {
        (scenario, version): ["--scenario", scenario, *FORCED]
        for scenario, version in RUNS
        if version == "extension"
    }
    with ThreadPoolExecutor(3) as pool:
        yield {
            # Threads cannot ask for folders: pytest makes its own anew for each of the first.
            key: pool.submit(run, tmp_path_factory.mktemp("checks"), words)
            for key, words in arguments.items()
        }


@pytest.fixture
def read_run(runs):
    """Wait for a scenario's run, and return its checks and what the suite printed."""

    def read(scenario, version):
        folder, said = runs[(scenario if version == "extension" else None), version].result()
        name = re.compile(rf"server-{scenario}-\d{{4}}-\d\d-\d\dT.*")
        results = [path for path in folder.iterdir() if name.fullmatch(path.name)]
        assert len(results) == 1, said
        return json.loads((results[0] / "checks.json").read_text(encoding="utf-8")), said

    return read


@pytest.mark.parametrize(("scenario", "version"), RUNS)
def test_a_scenario_has_no_failed_check(scenario, version, read_run, record_property):
    checks, said = read_run(scenario, version)
    failed = [
        f"{check['id']} ({check['status']}): {check.get('errorMessage')}"
        for check in checks
        if check["status"] not in PASSED
    ]
    passed = [check for check in checks if check["status"] == "SUCCESS"]
    record_property("checks passed", len(passed))
    record_property("checks failed", len(failed))
    assert not failed, "\n".join([*failed, said])
    assert passed, said


def test_each_scenario_of_the_suite_is_run_or_listed_with_a_reason(npm_programs):
    listed = subprocess.run(
        [*npm_programs.conformance, "list", "--server"],
        check=True,
        capture_output=True,
        text=True,
        timeout=90,
    ).stdout
    suite = {
        name: set(versions.split(","))
        for name, versions in re.findall(r"^\s+- (\S+) \[([^]]+)\]$", listed, re.MULTILINE)
    }
    assert len(suite) == listed.count("\n  - ")
    not_applicable = [name for group in SCENARIOS["not_applicable"] for name in group["scenarios"]]
    assert len(not_applicable) == len(set(not_applicable))
    assert not set(not_applicable) & SCENARIOS["run"].keys()
    ours = {name: set(versions) for name, versions in SCENARIOS["run"].items()}
    assert ours | {name: suite.get(name) for name in not_applicable} == suite


def test_each_reason_is_given():
    for group in SCENARIOS["not_applicable"]:
        assert group["reason"].endswith(".")
