"""What was seen of each assistant: what tests expect, and the documentation's table shows."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

_FILE = tomllib.loads((Path(__file__).parent / "seen.toml").read_text("utf-8"))
ROWS: Mapping[str, str] = _FILE["rows"]
"""What the table calls each test."""
SEEN: Mapping[str, Mapping[str, str]] = _FILE["assistants"]
"""By assistant and by test, beside the assistant's package."""
