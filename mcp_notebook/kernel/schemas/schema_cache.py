"""Schemas on disk, so that a notebook that starts again need not build them again.

Runs in the user's kernel, at definition, on any thread. What a schema is made of is told by
`kernel.schemas.fingerprints`; what cannot be told exactly is not cached: a schema is never wrong,
at worst it is built. Who builds it, and the validator at the first call, is
`kernel.schemas.input_schema`'s business.

The files lie in a folder below `Settings.home`, which notebook and headless kernel agree on: a
desktop client's child process has no XDG variables, and would look for the user's cache elsewhere.
Each file is one schema: named for its key, the first line a digest of the rest, written aside and
renamed. So any number of processes may read, write and clear at once, and what is damaged or
somebody else's is built anew. The folder is bounded in files and in age.

A disk that cannot be read or written costs time, and nothing else.
"""

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pydantic
import pydantic_core

from mcp_notebook._version import __version__
from mcp_notebook.discovery import write_private
from mcp_notebook.kernel.schemas.fingerprints import Unknown, fingerprint

MAX_FILES = 5_000
"""Schemas that are kept; the ones not used for longest go."""
MAX_AGE = 90 * 86_400.0
"""Seconds after its last use that a schema is kept."""
_TOUCH = 86_400.0
"""Seconds between two notes of a file's use: one note a day is enough for pruning."""
_SUFFIX = ".json"
_MAKERS = (
    *(
        "schema.py",
        "signatures.py",
        "arguments.py",
        "annotations.py",
        "attrs_classes.py",
        "docstrings.py",
    ),
    *("markers.py", "metaschema.py", "fingerprints.py"),
)
"""Our modules that say what a schema is: who changes them without a new version, gets new ones."""


class SchemaCache:
    """The schemas of one user; for any thread.

    Args:
        folder: Where the files are; made at the first `put`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._makers: bytes | None = None
        self._pruned = False

    def key(self, *parts: Any) -> str | None:
        """Return the name of what is made of these parts; None if they cannot be told exactly.

        Args:
            parts: All that the schema depends on.
        """
        try:
            told = fingerprint(parts)
        except (Unknown, RecursionError):
            return None
        except Exception:  # noqa: BLE001 - a class of the author's may take part, and raise anything
            return None
        if self._makers is None:
            self._makers = _makers()
        return hashlib.sha256(self._makers + told).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was put under this key, if it is there and whole."""
        path = self._path(key)
        try:
            digest, _, body = path.read_text(encoding="ascii").partition("\n")
            if digest != _digest(key, body):
                return None
            if time.time() - path.stat().st_mtime > _TOUCH:
                path.touch()
            found = json.loads(body)
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object under this key."""
        # Not sorted: the order of a schema's properties is the signature's.
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            body = json.dumps(value, separators=(",", ":"), allow_nan=False)
            write_private(self._path(key), f"{_digest(key, body)}\n{body}")
            if not self._pruned:
                self._pruned = True
                _prune(self._folder)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"


def _digest(key: str, body: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode()).hexdigest()


def _makers() -> bytes:
    """Return what tells apart all versions of the code that makes schemas."""
    try:
        parser = version("docstring-parser")
    except PackageNotFoundError:
        parser = "?"
    versions: Sequence[str] = (
        __version__,
        pydantic.VERSION,
        pydantic_core.__version__,
        parser,
        sys.version,
    )
    code = hashlib.sha256(repr(versions).encode())
    for name in _MAKERS:
        with contextlib.suppress(OSError):  # in an archive, say: then the version alone counts
            code.update((Path(__file__).parent / name).read_bytes())
    return code.digest()


def _prune(folder: Path) -> None:
    used = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError):  # another process prunes, too
            used.append((path.stat().st_mtime, path))
    used.sort(reverse=True)
    oldest = time.time() - MAX_AGE
    for number, (when, path) in enumerate(used):
        if number >= MAX_FILES or when < oldest:
            with contextlib.suppress(OSError):
                path.unlink()
