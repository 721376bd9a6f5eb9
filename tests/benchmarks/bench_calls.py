"""What a call of ``add(a, b)`` takes, beside FastMCP's in-process server. No test: run it by hand.

    python tests/benchmarks/bench_calls.py
    python tests/benchmarks/bench_calls.py --fastmcp /path/to/python-with-fastmcp

Modern protocol, Streamable HTTP, one raw keep-alive connection. The rounds of both servers
alternate within one run, so that whatever else the machine does hurts both; the ratio of the
medians is what to trust.
"""

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "e2e")]

from clients import TOKEN, http_bridge  # noqa: E402 - found through the path above
from live import Link, live_kernel, record_of  # noqa: E402

from mcp_notebook.wire import frames, messages  # noqa: E402

ROUNDS, CALLS = 10, 300
VERSION = "2026-07-28"
ADD = '%%mcp_tool\ndef add(a: int, b: int) -> str:\n    "Add."\n    return str(a + b)'
FASTMCP = """
import sys
from fastmcp import FastMCP
server = FastMCP("bench")
@server.tool
def add(a: int, b: int) -> str:
    "Add."
    return str(a + b)
server.run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False,
    uvicorn_config={"access_log": False, "log_level": "error"},
)
"""


def request(address: str) -> bytes:
    """Return the bytes of a call over HTTP."""
    where = urlsplit(address)
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = [
        f"POST {where.path} HTTP/1.1",
        f"Host: {where.netloc}",
        f"Authorization: Bearer {TOKEN}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {VERSION}",
        "Mcp-Method: tools/call",
        "Mcp-Name: add",
        f"Content-Length: {len(body)}",
    ]
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode()


def over_http(address: str) -> Callable[[], None]:
    """Return what makes one call over a connection that stays open."""
    where = urlsplit(address)
    connection = socket.create_connection((where.hostname, where.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    message = request(address)
    reader = connection.makefile("rb")

    def call() -> None:
        connection.sendall(message)
        status = reader.readline()
        length, chunked = 0, False
        while (line := reader.readline().lower()) != b"\r\n":
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            chunked = chunked or (line.startswith(b"transfer-encoding:") and b"chunked" in line)
        body = reader.read(length)
        while chunked and (size := int(reader.readline(), 16)) + 1:
            body += reader.read(size)
            reader.readline()
            if size == 0:
                break
        assert b" 200 " in status, body
        assert b'"3"' in body, body

    return call


def over_link(link: Link) -> Callable[[], None]:
    """Return what makes one call over the link to the kernel, without a bridge."""
    message = b"".join(frames.encode(messages.Call(id=1, tool="add", arguments={"a": 1, "b": 2})))

    def call() -> None:
        link.socket.sendall(message)
        link.socket.recv(65536)

    return call


@contextmanager
def fastmcp(python: str) -> Iterator[str]:
    """Serve the same tool with FastMCP; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [python, "-c", FASTMCP, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def main() -> None:
    """Measure, and print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fastmcp", metavar="PYTHON", help="a Python that has fastmcp")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="mcpnb-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        kernel = stack.enter_context(live_kernel(home))
        kernel.ok("%load_ext mcp_notebook")
        kernel.ok(ADD)
        bridge = stack.enter_context(http_bridge(home))
        calls = {
            "through the bridge": over_http(bridge.url),
            "link to the kernel alone": over_link(stack.enter_context(Link(record_of(kernel)))),
        }
        if given.fastmcp:
            calls["FastMCP in one process"] = over_http(stack.enter_context(fastmcp(given.fastmcp)))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                for _ in range(CALLS):
                    began = time.perf_counter()
                    call()
                    times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(of) for name, of in times.items()}
    for name, median in medians.items():
        p95 = statistics.quantiles(times[name], n=20)[-1]
        ratio = medians["through the bridge"] / median
        print(f"{name:26} p50 {median * 1e3:.2f} ms   p95 {p95 * 1e3:.2f} ms   {ratio:.2f}")


if __name__ == "__main__":
    main()
