"""The requests of the benchmarks as bytes, and what their answers have to say. No SDK."""

import json
from dataclasses import dataclass, field
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = {"modern": MODERN, "legacy": LEGACY}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
KB, MB = 2**10, 2**20


@dataclass(frozen=True)
class Request:
    """A request, the same for every server."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    says: bytes = b""
    """What stands in each right answer, within its first or last 500 bytes."""
    least: int = 0
    """Bytes that each right answer has at least."""

    @property
    def name(self) -> str:
        """What HTTP's header has of it in the modern era."""
        return str(self.params.get("name") or self.params.get("uri") or "")

    def body(self, era: str, number: bytes = b"1") -> bytes:
        """Return the JSON-RPC message.

        Args:
            era: "modern" or "legacy".
            number: The request's id.
        """
        params = self.params | ({"_meta": META} if era == "modern" else {})
        rest = json.dumps({"method": self.method, "params": params}, separators=(",", ":"))
        return b'{"jsonrpc":"2.0","id":' + number + b"," + rest[1:].encode()

    def check(self, answer: bytes | bytearray | memoryview) -> None:
        """Look whether an answer is right, in time that does not depend on its size.

        Raises:
            WrongAnswer: If it is not.
        """
        ends = bytes(answer[:500]) + bytes(answer[max(500, len(answer) - 500) :])
        right = len(answer) >= self.least and self.says in ends and b'"isError":true' not in ends
        if not right:
            raise WrongAnswer(f"{self.method} {self.name} was answered with {ends!r}")


class WrongAnswer(Exception):
    """A server answered, but not what was asked."""


def call(tool: str, says: bytes, least: int = 0, **arguments: Any) -> Request:
    """Return a call of a tool."""
    return Request("tools/call", {"name": tool, "arguments": arguments}, says, least)


ADD = call("add", b'"text":"3"', a=1, b=2)
PICTURE_500KB = call("picture_500kb", b"iVBORw0KGgo", least=650 * KB)
TABLE_1MB = call("table_1mb", b"Region 4", least=800 * KB)
ARGUMENT_200KB = call("length", b'"text":"204800"', text="x" * 200 * KB)
PROMPT = Request(
    "prompts/get", {"name": "ask", "arguments": {"about": "sales"}}, b"a report about sales"
)
RESOURCE = Request("resources/read", {"uri": "data://document"}, b"The figures of this year.")
LIST = Request("tools/list", says=b'"tools"', least=2_000)
LIST_500 = Request("tools/list", says=b'"tools"', least=100_000)
INITIALIZE = Request(
    "initialize",
    {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "0"},
    },
    says=b"serverInfo",
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
