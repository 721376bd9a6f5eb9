"""Tries kernels and bridges of two versions with each other: exchange_versions.py BEFORE NOW.

The arguments are the Pythons of two environments. Runs in the second one.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from mcp import Client, StdioServerParameters

LIMIT = 60
CELLS = (
    "%load_ext mcp_notebook",
    """%%mcp_tool --read-only
def double(n: int) -> int:
    "Double."
    print("doubled")
    return 2 * n
""",
    '%%mcp_tool\nasync def fail(message: str):\n    "Fail."\n    raise ValueError(message)',
)


class Manager(KernelManager):
    """Starts the kernel of one environment."""

    python = sys.executable

    @property
    def kernel_spec(self) -> KernelSpec:
        """Return how the kernel is started."""
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="kernel", language="python")


@contextmanager
def open_notebook(python: str, home: Path) -> Iterator[None]:
    """Run the cells in a kernel of an environment, for the block."""
    manager = Manager(transport="ipc", ip=str(home / "ipc"))
    manager.python = python
    env = os.environ | {"HOME": str(home), "JPY_SESSION_NAME": "sums.ipynb"}
    manager.start_kernel(env=env, cwd=str(home))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=LIMIT)
        for cell in CELLS:
            reply = client.execute_interactive(cell, timeout=LIMIT, output_hook=lambda _: None)
            assert reply["content"]["status"] == "ok", reply["content"]
        yield
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


async def call_tools(python: str, home: Path, era: str) -> None:
    """Call the notebook's tools by a bridge of an environment."""
    server = StdioServerParameters(
        command=python, args=["-m", "mcp_notebook", "stdio"], env={"HOME": str(home)}
    )
    async with asyncio.timeout(LIMIT), Client(server, mode=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"double", "fail"} <= names, names
        done = await client.call_tool("double", {"n": 21})
        texts = [block.text for block in done.content]
        assert not done.is_error, texts
        assert "42" in "".join(texts), texts
        wrong = await client.call_tool("double", {"n": "many"})
        assert wrong.is_error
        failed = await client.call_tool("fail", {"message": "on purpose"})
        assert "on purpose" in "".join(block.text for block in failed.content)


def main() -> None:
    """Try both pairs, in both eras of MCP."""
    before, now = sys.argv[1:]
    for kernel, bridge, title in (
        (before, now, "a kernel of the version before, a bridge of this one"),
        (now, before, "a kernel of this version, a bridge of the one before"),
    ):
        with tempfile.TemporaryDirectory(prefix="up-") as folder:
            home = Path(folder)
            with open_notebook(kernel, home):
                for era in ("legacy", "auto"):
                    asyncio.run(call_tools(bridge, home, era))
        print(f"{title}: calls and errors arrive")  # noqa: T201


if __name__ == "__main__":
    main()
