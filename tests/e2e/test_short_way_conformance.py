"""What MCP's conformance suite sends is answered on the short way as by the SDK.

The requests are in ``tests/conformance/requests.json``, written down by ``record_requests.py``.
"""

import asyncio
import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from generated_requests import Request
from live import live_kernel, record_of
from short_way import Comparison, both_sides

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="Unix sockets"),
]

HERE = Path(__file__).parents[1] / "conformance"
SCENARIOS = json.loads((HERE / "requests.json").read_text(encoding="utf-8"))
_MADE_UP = {
    "state": re.compile(r'"requestState": ?"(.*?)"'),
    "resource": re.compile(r'"uri": ?"(notebook:.*?)"'),
}


@pytest.fixture(scope="module")
def kernels():
    """A kernel for each server with the suite's notebook: some of its tools change it."""
    cells = [
        cell.source
        for cell in nbformat.read(HERE / "conformance.ipynb", as_version=4).cells
        if cell.cell_type == "code"
    ]
    with ExitStack() as stack:
        kernels = []
        for _ in range(2):
            home = Path(stack.enter_context(TemporaryDirectory(prefix="mcpnb-")))
            kernels.append(stack.enter_context(live_kernel(home, notebook="conformance.ipynb")))
        for cell in cells:
            for kernel in kernels:
                kernel.ok(cell)
        yield kernels


class Client:
    """Sends the requests of one scenario to one of the servers."""

    def __init__(self, side):
        self._side = side
        self._names = {}
        """What this server has made up, by its names in the file."""

    async def ask(self, recorded):
        """Send a request, and return the answer."""
        text = json.dumps(recorded)
        for name, own in self._names.items():
            text = text.replace(name, own)
        recorded = json.loads(text)
        headers = [(name.lower(), value) for name, value in recorded["headers"]]
        body = recorded["body"].encode()
        request = Request("", None, method=recorded["method"], headers=headers, body=body)
        answer = await self._side.ask(request)
        self._note("session", self._side.sessions.pop("opened", None))
        for kind, pattern in _MADE_UP.items():
            for own in pattern.findall(self._side.body.decode()):
                self._note(kind, own)
        return answer

    def _note(self, kind, own):
        if own is not None and own not in self._names.values():
            number = 1 + sum(name.startswith(f"<{kind}") for name in self._names)
            self._names[f"<{kind} {number}>"] = own


async def test_each_request_of_the_suite_is_answered_alike(kernels, module_home, record_property):
    records = [record_of(kernel) for kernel in kernels]
    async with both_sides(records, module_home) as sides:
        comparison = Comparison(sides)
        for scenario, requests in SCENARIOS.items():
            clients = [Client(side) for side in sides]
            for recorded in requests:
                if not _is_answer(recorded["body"]):  # to a question: `short_way` answers itself
                    answers = await asyncio.gather(*(each.ask(recorded) for each in clients))
                    comparison.note(f"{scenario}: {recorded}", answers)
    comparison.check(record_property)


def _is_answer(body):
    return body != "" and "result" in json.loads(body)
