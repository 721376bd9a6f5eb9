"""Writes down what MCP's conformance suite sends: ``python tests/conformance/record_requests.py``.

Runs the suite as ``pytest -m conformance`` does, and writes ``requests.json`` beside this file: for
each scenario that is not like one before, its requests in their order. Sessions, the states of open
questions and the addresses of resources, which a server makes up, are ``<session 1>``,
``<state 1>`` and ``<resource 1>``. ``tests/e2e/test_short_way_conformance.py`` sends them again.
Tasks are left out: what is said of them depends on when one asks.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(HERE.parent / "e2e")]

from clients import TOKEN, http_bridge  # noqa: E402
from npm import programs  # noqa: E402
from proxy import Passed, noting  # noqa: E402

FILE = HERE / "requests.json"
NOT_KEPT = {
    *(
        "accept-encoding",
        "accept-language",
        "connection",
        "content-length",
        "host",
        "sec-fetch-mode",
    ),
    *("authorization", "transfer-encoding", "user-agent"),
}
"""Headers that say nothing of MCP."""
_SESSION = re.compile(rb"^mcp-session-id: *(\S+)", re.IGNORECASE | re.MULTILINE)
_STATE = re.compile(rb'"requestState": *"([^"]+)"')
_RESOURCE = re.compile(rb'"uri": *"(notebook:[^"]+)"')


def main() -> None:
    """Run the suite, and write the file."""
    suite = programs().conformance
    scenarios = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))["run"]
    kept: dict[str, list[dict[str, object]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="mcpnb-") as home,
        http_bridge(Path(home), str(HERE / "conformance.ipynb")) as served,
        noting(f"Authorization: Bearer {TOKEN}", served.url) as (url, passed),
    ):
        for scenario, versions in scenarios.items():
            for version in (name for name in versions if name != "extension"):
                passed.clear()
                arguments = ["server", "--url", url, "--scenario", scenario]
                subprocess.run(
                    [*suite, *arguments, "--spec-version", version],
                    cwd=home,
                    check=False,
                    stdout=subprocess.DEVNULL,
                )
                requests = _describe(passed)
                if requests not in kept.values():
                    kept[f"{scenario} {version}"] = requests
    FILE.write_text(_format(kept), encoding="utf-8")


def _describe(passed: list[Passed]) -> list[dict[str, object]]:
    """Return the requests, with names in place of what the server has made up."""
    names: dict[str, str] = {}
    for pattern, name in ((_SESSION, "session"), (_STATE, "state"), (_RESOURCE, "resource")):
        found = (match.decode() for each in passed for match in pattern.findall(each.answer))
        for number, text in enumerate(dict.fromkeys(found), 1):
            names[text] = f"<{name} {number}>"
    return [_describe_request(bytes(each.request), names) for each in passed]


def _describe_request(request: bytes, names: dict[str, str]) -> dict[str, object]:
    text = request.decode()
    for known, name in names.items():
        text = text.replace(known, name)
    head, _, body = text.partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = [line.split(":", 1) for line in lines]
    kept = [[name, value.strip()] for name, value in headers if name.lower() not in NOT_KEPT]
    return {"method": first.split(" ")[0], "headers": kept, "body": body}


def _format(kept: dict[str, list[dict[str, object]]]) -> str:
    """Return JSON with one line for each request."""
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, requests)) + "\n]"
        for name, requests in kept.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
