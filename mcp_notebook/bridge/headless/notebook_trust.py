"""Whether a notebook that is about to be run is trusted: said before, and refused if so set.

A notebook is trusted if Jupyter has signed it as it is now: with ``jupyter trust``, or when the
user saved it in a frontend. Jupyter asks that of outputs only, and shows them without a signature
if they can do no harm; here it is asked of the whole notebook, because all of its code is run.

Runs in a worker thread of the bridge or the command, because of the database. Nothing is changed
there: nbformat's own way of looking would create a missing database and rename a locked one. The
file is read by `notebook`, so that what is checked is what is run.
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
from nbformat.sign import MemorySignatureStore, NotebookNotary, TrustNotebookApp

from mcp_notebook.bridge.headless.kernel_process import make_silent_logger
from mcp_notebook.errors import UntrustedNotebook
from mcp_notebook.settings.settings import Settings

_LOCK_WAIT = 1.0
"""Seconds to wait while Jupyter writes a signature."""
_FIRST_SIGNED = (3, 0)
_FIRST_WITH_IDS = (4, 5)
"""Versions of the notebook format: the first that is signed, the first whose cells have ids."""


async def check_trust(path: Path, text: str, settings: Settings, *, is_told: bool = True) -> None:
    """Say on stderr that a notebook is not trusted, unless it is.

    Args:
        path: The notebook.
        text: What is in the file, and is going to be run.
        settings: They say whether a notebook that is not trusted may be run.
        is_told: Whether to say so; else it is only refused.

    Raises:
        UntrustedNotebook: It may not.
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
    if not is_told:
        return
    print_note(
        f"{path} is not trusted ({reason}), and its code runs as you: trust it with `{command}`, "
        "or have such notebooks refused with --trusted-only."
    )


def _format_command(path: Path) -> str:
    # Absolute: a name may begin with a dash, and Jupyter's options can name files of code.
    return f"jupyter trust {shlex.quote(str(path.absolute()))}"


def explain_distrust(text: str) -> str | None:
    """Return why a notebook is not trusted, as a part of a sentence, or None if it is.

    Args:
        text: What is in its file.
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
    """Return whether Jupyter makes up ids at each reading, and so another notebook to sign."""
    ids = [cell.get("id") for cell in notebook.cells]
    return None in ids or len(set(ids)) < len(ids)


def _look_up(notebook: NotebookNode) -> str | None:
    notary = _make_notary()
    secret, database = Path(notary.secret_file), Path(notary.db_file)
    # As files: what else may have the name is not waited for, and a missing secret is not made up.
    if not secret.is_file() or not database.is_file():
        return "Jupyter has not signed any here"
    digest = notary.compute_signature(notebook)
    try:
        is_signed = _has_signature(database, notary.algorithm, digest)
    except sqlite3.Error as error:
        return f"Jupyter's signatures in {database} cannot be read: {error}"
    return None if is_signed else "Jupyter has not signed it as it is now"


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
