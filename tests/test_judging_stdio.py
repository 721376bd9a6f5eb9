"""The program between real clients and a bridge over stdio notices what is not one of MCP's."""

import json
import subprocess
import sys

import pytest
from judging_stdio import check_judged, judge_settings

ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
RIGHT = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}


def ask(home, **answer):
    """Return what a client is told by a bridge that has one answer."""
    line = json.dumps({"jsonrpc": "2.0", **answer}) + "\n"
    bridge = f"import sys; sys.stdin.readline(); sys.stdout.write({line!r})"
    settings = home / "settings.json"
    settings.write_text(json.dumps([sys.executable, "-c", bridge, "stdio"]), "utf-8")
    judge_settings(home)
    told = subprocess.run(
        json.loads(settings.read_text("utf-8")),
        input=json.dumps(ASK) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert told.stdout == line


def test_what_is_of_mcp_passes_as_it_came(tmp_path):
    ask(tmp_path, id=1, result=RIGHT)
    check_judged(tmp_path)


@pytest.mark.parametrize(
    "answer",
    [{"id": 1, "result": {"tools": [{"name": "add"}]}}, {"id": 1}, {"id": 7, "result": RIGHT}],
    ids=["result", "no message", "nobody asked"],
)
def test_what_is_not_of_mcp_is_told_at_the_end(tmp_path, answer):
    ask(tmp_path, **answer)
    with pytest.raises(AssertionError, match="received: b"):
        check_judged(tmp_path)
