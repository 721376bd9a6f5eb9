"""What conversations with assistants and with agents share: the notebook's tools, a clean start."""

import base64
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from model_apis import Received
from stand_in import PATIENCE

LOAD = "%load_ext mcp_notebook"
TOOLS = """%%mcp_tool
from pydantic import BaseModel

class Extremes(BaseModel):
    low: int
    high: int

def greet(name: str) -> str:
    "Greets somebody."
    return f"Hello, {name}!"

def rain_table(days: int = 1000):
    "Shows the rain of many days."
    import pandas as pd
    return pd.DataFrame({"day": range(days), "rain": [0.5] * days})

def extremes() -> Extremes:
    "Plots the extremes, and returns them."
    import matplotlib.pyplot as plt
    print("printed words")
    plt.plot([1, 2, 3])
    plt.show()
    return Extremes(low=12345, high=67890)

def fail():
    "Fails."
    raise ValueError("no such year: 1800")
"""
"""Those that both need; each has more."""
DATA = """from mcp_notebook import Result, mcp_tool

VALUE = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}

@mcp_tool(output_schema=VALUE)
def by_hand() -> Result:
    "Prints, draws, says and has data."
    import matplotlib.pyplot as plt
    print("printed words")
    plt.plot([1, 2, 3])
    plt.show()
    return Result("said words", structured={"value": "words of the data"})
"""
"""A tool whose author asks for structured content."""
PNG = b"\x89PNG"


def find_parts(told: Received) -> str:
    """Say which parts of the result of `DATA` a model is told, and check that it misses nothing."""
    has_data = "words of the data" in told.text
    has_text = told.text.count("said words") > has_data  # the data repeats it
    has_picture = any(data.startswith(PNG) for _, data in told.pictures)
    has_picture = has_picture or base64.b64encode(PNG[:3]).decode() in told.text
    assert "printed words" in told.text
    assert "said words" in told.text
    assert has_picture or not has_data or re.search(r"notebook://\w+/\w+/picture\.png", told.text)
    parts = {"text": has_text, "data": has_data, "picture": has_picture}
    return ", ".join(part for part, is_told in parts.items() if is_told)


def yes(condition: object) -> str:
    """Say it as the tables of what was seen do."""
    return "yes" if condition else "no"


def make_env(home: Path, url: str, path: str = os.defpath) -> dict[str, str]:
    """Return an environment with nothing in it but a home folder with a temporary one.

    Args:
        home: The home folder.
        url: The stand-in for the model; as a proxy, it refuses whatever else is looked for.
        path: Where programs are.
    """
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)  # a kernel of the test has it, too
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return {
        "HOME": str(home),
        "PATH": path,
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        **dict.fromkeys(proxies, url),
    }


def start(
    command: Sequence[str | Path], home: Path, folder: Path, env: dict[str, str], *, has_pipes: bool
) -> subprocess.Popen[str]:
    """Start a program in a folder; what it says goes to ``said`` in its home, without pipes."""
    with (home / "said").open("w") as said:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE if has_pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if has_pipes else said,
            stderr=said,
            text=True,
            start_new_session=True,
        )


def end(process: subprocess.Popen[str]) -> None:
    """End a program that a failed test has left, with what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
