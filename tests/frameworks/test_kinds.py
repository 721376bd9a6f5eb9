"""Prompts, resources and skills through the clients of frameworks, FastMCP's first.

Each runs once, as a program that prints what it is told. What depends on the client is in
`kinds.toml`, by the names of the tests; the documentation's table is made from it.
"""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from bridges import TOKEN, http_bridge
from frameworks import FRAMEWORKS, LIMIT, CannotInstall, bring_in
from judging_proxy import judging
from kinds import CELLS, LOOK, ORDERS, REPORT, SKILL
from live import live_kernel
from talks import LOAD, yes

FILE = tomllib.loads((Path(__file__).parent / "kinds.toml").read_text("utf-8"))
SEEN = FILE["seen"]
PATIENCE = 120
"""Seconds for a program to run; the import of some frameworks takes ten."""
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(LIMIT + PATIENCE)]


@pytest.fixture(scope="module")
def url(module_home):
    """The address of a bridge to a notebook that has all kinds."""
    with live_kernel(module_home, notebook=str(module_home / "kinds.ipynb")) as kernel:
        for cell in (LOAD, *CELLS, LOOK):
            kernel.ok(cell)
        with http_bridge(module_home) as bridge, judging(bridge.url) as url:
            yield url


@pytest.fixture(scope="module", params=SEEN)
def name(request):
    """The name of a framework."""
    return request.param


@pytest.fixture(scope="module")
def said(name, url, module_home):
    """What the program of a framework prints."""
    packages, program = (
        (FILE[name]["packages"], FILE[name]["program"])
        if name in FILE
        else (FRAMEWORKS[name].packages, FRAMEWORKS[name].agent)
    )
    try:
        python = bring_in(packages)
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)
    ended = subprocess.run(
        # -P: its name may be that of the framework's package.
        [python, "-P", Path(__file__).parent / "kinds" / program],
        env={
            "HOME": str(module_home),
            "PATH": os.defpath,
            "NOTEBOOK_URL": url,
            "NOTEBOOK_TOKEN": TOKEN,
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def expected(request, name):
    """What was seen of this framework in this test."""
    return SEEN[name][request.node.originalname.removeprefix("test_")]


def test_prompts(said, expected):
    listed = {"report": ["year", "region"], "look": []}
    assert said.get("prompts", listed) == listed  # LangChain has no list
    assert yes(said["report"] == [REPORT]) == expected


def test_wrong_arguments(said, expected):
    assert yes("year: missing" in said["refused"]) == expected


def test_pictures(said, expected):
    if expected == "fails":
        assert "image" in said["look"]
        return
    first, picture, last = said["look"]
    assert first.startswith("Look at this:")
    assert first.endswith("region\nEU\nUS")
    assert (picture, last) == ("image", "What is odd?")
    assert expected == "yes"


def test_resources(said, expected):
    assert yes(said.get("data://orders") == ORDERS) == expected
    if expected == "yes":
        assert said["resources"] == ["data://orders", SKILL]


def test_templates(said, expected):
    assert said.get("templates", ["frame://{name}"]) == ["frame://{name}"]
    assert yes(said.get("frame://orders") == ORDERS) == expected


def test_completion(said, expected):
    assert yes(said.get("completed") == ["US", "orders"]) == expected


def test_skills(said, expected):
    assert yes("skills" in said) == expected
    if expected == "yes":
        uri, text = said["skills"]
        assert uri == SKILL
        assert "Call `rain` first." in text


def test_the_table_has_every_test_of_every_framework():
    for seen in SEEN.values():
        assert seen.keys() == FILE["rows"].keys()
