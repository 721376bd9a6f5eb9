"""Files of single limits, as `MCP_NOTEBOOK_LIMITS` names them."""

from pathlib import Path


def set_limits(folder: Path, **limits: float) -> dict[str, str]:
    """Return the environment of a process with other limits, which a new file in a folder has."""
    number = sum(1 for _ in folder.glob("limits*.toml"))
    file = folder / f"limits{number}.toml"
    file.write_text("".join(f"{name} = {value}\n" for name, value in limits.items()), "utf-8")
    return {"MCP_NOTEBOOK_LIMITS": str(file)}
