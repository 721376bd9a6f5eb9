"""The environments of the servers beside ours: made once, kept in the user's cache, used again.

Each is what `pip install` gives, and nothing that would make it faster.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = {
    "FastMCP": ["fastmcp>=4.1,<4.2", "pandas"],
    "evals": ["fastmcp>=4.1,<4.2", "pandas", "polars", "pyarrow", "shapely", "networkx"],
    "gradio": ["gradio[mcp]>=6,<7", "pandas"],
}
"""What is installed for each."""
SHOWN = {
    "FastMCP": ["fastmcp", "mcp", "uvicorn"],
    "evals": ["fastmcp"],
    "gradio": ["gradio", "mcp", "uvicorn"],
}
"""Whose versions are told with the numbers."""


def cache() -> Path:
    """Return the folder of the environments."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mcp-notebook-benchmarks"


def python_of(name: str) -> str:
    """Return the Python of an environment, which is made if it is not there.

    Args:
        name: One of `REQUIREMENTS`.

    Raises:
        subprocess.CalledProcessError: If it cannot be made; pip has said why.
    """
    requirements = REQUIREMENTS[name]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256("\n".join([version, *requirements]).encode()).hexdigest()[:8]
    folder = cache() / f"{name}-{key}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"Making {folder} with {', '.join(requirements)}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        if uv := shutil.which("uv"):
            run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
            run([uv, "pip", "install", "--quiet", "--python", str(python), *requirements])
        else:
            run([sys.executable, "-m", "venv", str(folder)])
            run([str(python), "-m", "pip", "install", "--quiet", *requirements])
        (folder / "complete").touch()
    return str(python)


def versions_of(name: str) -> dict[str, str]:
    """Return the versions of what matters in an environment, which is there."""
    code = "import sys, importlib.metadata as m\nfor n in sys.argv[1:]: print(m.version(n))"
    done = run([python_of(name), "-c", code, *SHOWN[name]])
    return dict(zip(SHOWN[name], done.split(), strict=True))


def run(command: list[str]) -> str:
    """Run a command that must not fail, and return what it prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
