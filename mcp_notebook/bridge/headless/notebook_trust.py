"""Warns before an untrusted notebook is run, or refuses it if the settings say so.

A notebook is trusted if Jupyter has signed its current content: with ``jupyter trust``, or when the
user saved it in a frontend. Jupyter requires trust only for showing outputs, and shows harmless
outputs without it; here the whole notebook must be trusted, because all of its code is run.

Runs in a worker thread of the bridge or the command, because of the database, which is only read:
nbformat's own lookup would create a missing database and rename a locked one. `notebook` reads the
file, so that the checked content is the content that is run.
"""

import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio.to_thread

from mcp_notebook.bridge.headless import jsonschema_import  # noqa: F401
from mcp_notebook.text.terminal import print_note

# isort: split
from jupyter_core.paths import jupyter_data_dir
from nbformat import NotebookNode
from nbformat.reader import get_version
from nbformat.reader import reads as read_any_version
from nbformat.sign import (
    MemorySignatureStore,
    NotebookNotary,
    TrustNotebookApp,
)

from mcp_notebook.bridge.headless.kernel_process import make_silent_logger
from mcp_notebook.errors import UntrustedNotebook
from mcp_notebook.settings.settings import Settings

_OWN_NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
"""The notebooks of the repository that this package runs from. Write access to them is write access
to the package's code."""
_LOCK_WAIT = 1.0
"""Seconds to wait while Jupyter writes a signature."""
_FIRST_SIGNED = (3, 0)
_FIRST_WITH_IDS = (4, 5)
"""Versions of the notebook format: the first that is signed, the first whose cells have ids."""


async def check_trust(path: Path, text: str, settings: Settings, *, is_told: bool = True) -> None:
    """Warn on stderr if a notebook is not trusted, or refuse it.

    Args:
        path: The notebook.
        text: The content of the file, which will be run.
        settings: Whether an untrusted notebook may be run.
        is_told: Whether to print the warning, if the notebook did not come with this package.

    Raises:
        UntrustedNotebook: The notebook is not trusted, and must not be run.
    """
    reason = await anyio.to_thread.run_sync(explain_distrust, text)
    if reason is None:
        return
    command = _format_command(path)
    if settings.trusted_only:
        raise UntrustedNotebook(
            f"{path} is not trusted ({reason}), and MCP_NOTEBOOK_TRUSTED_ONLY or --trusted-only is "
            f"set, so it is not run. Read its code, then trust it with `{command}`.",
            notebook=path.stem,
        )
    if not is_told or await anyio.to_thread.run_sync(_is_own, path):
        return
    print_note(
        f"{path} is not trusted ({reason}), and its code runs with your rights. Trust it with "
        f"`{command}`, or refuse untrusted notebooks with MCP_NOTEBOOK_TRUSTED_ONLY=1."
    )


def _is_own(path: Path) -> bool:
    """Return whether a notebook came with this package."""
    return path.resolve().is_relative_to(_OWN_NOTEBOOKS)


def _format_command(path: Path) -> str:
    # Absolute: a name may begin with a dash, and some of Jupyter's options run code.
    return f"jupyter trust {shlex.quote(str(path.absolute()))}"


def explain_distrust(text: str) -> str | None:
    """Return why a notebook is not trusted, as part of a sentence; None if it is trusted.

    Args:
        text: The content of its file.
    """
    try:
        notebook = read_any_version(text)
        version = get_version(notebook)
        if version < _FIRST_SIGNED:
            return "its format is too old for a signature, until Jupyter has saved it"
        if version >= _FIRST_WITH_IDS and _lacks_ids(notebook):
            return "some of its cells have no id of their own, until Jupyter has saved it"
        return _look_up(notebook)
    # Jupyter's configuration is code, and may also end in `sys.exit`.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return f"Jupyter's signatures cannot be looked up: {type(error).__name__}: {error}"


def _lacks_ids(notebook: NotebookNode) -> bool:
    """Return whether Jupyter would generate cell ids, so that no signature matches."""
    ids = [cell.get("id") for cell in notebook.cells]
    return None in ids or len(set(ids)) < len(ids)


def _look_up(notebook: NotebookNode) -> str | None:
    notary = _make_notary()
    secret, database = Path(notary.secret_file), Path(notary.db_file)
    # Only regular files are read, and a missing secret is not created.
    if not secret.is_file() or not database.is_file():
        return "Jupyter has not signed any here"
    digest = notary.compute_signature(notebook)
    try:
        is_signed = _has_signature(database, notary.algorithm, digest)
    except sqlite3.Error as error:
        return f"Jupyter's signatures in {database} cannot be read: {error}"
    return None if is_signed else "Jupyter has not signed its present content"


def _make_notary() -> NotebookNotary:
    """Return a notary with the configuration of ``jupyter trust``, and without its database."""
    app = TrustNotebookApp(log=make_silent_logger())
    app.load_config_file()
    return NotebookNotary(
        parent=app, data_dir=jupyter_data_dir(), store_factory=MemorySignatureStore
    )


def _has_signature(database: Path, algorithm: str, digest: str) -> bool:
    uri = f"{database.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT)) as connection:
        query = "SELECT 1 FROM nbsignatures WHERE algorithm = ? AND signature = ?"
        return connection.execute(query, (algorithm, digest)).fetchone() is not None
