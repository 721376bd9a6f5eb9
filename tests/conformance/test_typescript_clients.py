"""Prompts, resources and skills through MCP's TypeScript SDKs: v1, and v2 in each era."""

import json
import subprocess
from pathlib import Path

import pytest
from clients import TOKEN, http_bridge, tool_kernel
from judging_proxy import judging
from kinds import CELLS, ORDERS, REPORT, SKILL
from live import TIMEOUT
from npm import LIMIT

PROGRAM = Path(__file__).parent / "kinds_client.mjs"

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(LIMIT)]


@pytest.fixture(scope="module")
def notebook(module_home):
    with tool_kernel(module_home, *CELLS) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def url(notebook):
    with http_bridge(notebook.home) as served, judging(served.url) as url:
        yield url


@pytest.mark.parametrize(
    ("sdk", "era"), [("sdk", "legacy"), ("client", "legacy"), ("client", "modern")]
)
def test_a_typescript_sdk_gets_prompts_resources_and_skills(npm_programs, notebook, url, sdk, era):
    node, suite = npm_programs.conformance
    modules = Path(suite).parents[3]
    with subprocess.Popen(
        [node, str(PROGRAM), str(modules), sdk, era, url, TOKEN],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def said():
            return json.loads(process.stdout.readline())

        try:
            report = said()["prompts"][0]
            assert report["name"] == "report"
            asked = [(each["name"], each["required"]) for each in report["arguments"]]
            assert asked == [("year", True), ("region", False)]
            got = said()
            assert got["description"] == report["description"]
            assert got["messages"] == [
                {"role": "user", "content": {"type": "text", "text": REPORT}}
            ]
            assert "year" in said()["refused"]
            assert said()["values"][0] == "US"

            resources = [resource["uri"] for resource in said()["resources"]]
            assert resources == ["data://orders", SKILL]
            (template,) = said()["templates"]
            assert template["uriTemplate"] == "frame://{name}"
            assert said()["text"] == ORDERS
            assert said()["text"] == ORDERS
            assert "frame://nobody/knows" in said()["refused"]
            assert said()["values"] == ["orders"]
            assert "Call `rain` first." in said()["text"]

            assert said() == {"subscribed": "data://orders"}
            notebook.ok("orders = orders.copy()")
            assert said() == {"updated": "data://orders"}
            notebook.ok(f"%%mcp_prompt {sdk}_{era}()\nAnother one.")
            assert said()["prompts"][-1]["name"] == f"{sdk}_{era}"
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()
