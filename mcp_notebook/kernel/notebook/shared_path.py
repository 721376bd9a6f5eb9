"""``SharedPath``: the type of a parameter for a file that the notebook shares.

Runs wherever a call's arguments are checked. `shared_folders` decides which files are shared, and
opens them; the check is that of a file that a tool returns.
"""

import io
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError, core_schema

from mcp_notebook.kernel.notebook.loaded_extension import find_extension
from mcp_notebook.kernel.results.files.shared_folders import (
    NoSuchFile,
    OpenPath,
    SharedFolders,
    Unreadable,
    open_without_links,
)
from mcp_notebook.kernel.safe.text import clean_text
from mcp_notebook.kernel.schemas.validation_messages import MAX_SHOWN
from mcp_notebook.settings.settings import Settings
from mcp_notebook.text.wording import shorten, suggest

if TYPE_CHECKING:
    _SystemPath = Path
else:  # before Python 3.12, only the class for the system in use can be subclassed
    _SystemPath = type(Path())


class SharedPath(_SystemPath):
    """A file that the notebook shares, as the type of a parameter.

    ::

        def count_rows(path: SharedPath) -> int:
            return len(pd.read_csv(path))

    Clients send a path below the notebook's folder or the folders in `MCP_NOTEBOOK_ALLOWED_ROOTS`,
    relative to the notebook's folder or absolute. Before the function runs, the path is resolved,
    and the file is opened once: it is a regular file, can be read, is not hidden, and no symlink or
    ``..`` leads out of the shared folders.

    The function gets an absolute `pathlib.Path` without symlinks. Its `open`, `read_text` and
    `read_bytes` never follow a symlink, so that nothing can take the file's place after the check.
    Other functions open the file by its name, as always.
    """

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the file as `pathlib.Path.open` does, but without following symlinks.

        Raises:
            OSError: A symlink is in the path, or as for `pathlib.Path.open`.
        """
        return io.open(  # noqa: UP020 - the name `open` is this method's
            self.absolute(), mode, buffering, encoding, errors, newline, opener=_open
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _check,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _core: Any, _handler: Any) -> dict[str, Any]:
        return {
            "type": "string",
            "format": "file-path",
            "description": "A file, relative to the notebook's folder.",
        }


def _open(path: str, flags: int) -> int:
    return open_without_links(Path(path), flags)


def _check(value: Any) -> SharedPath:
    if isinstance(value, SharedPath):  # a default, or checked already
        return value
    if isinstance(value, Path):  # from the author
        value = str(value)
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "a path is text")
    extension = find_extension()
    if extension is not None:
        folders = extension.folders
    else:  # a model that is made outside of a notebook
        folders = SharedFolders.from_settings(Settings.from_environment())
    if "\0" in value:
        raise _refuse("a path has no NUL character")
    path = (folders.folder or Path()) / value
    name = shorten(clean_text(value), MAX_SHOWN)
    try:
        return folders.read(path, _get_path, name or "''")
    except NoSuchFile:
        raise _refuse(_explain_missing(value, folders)) from None
    except Unreadable as error:
        raise _refuse(str(error)) from None


def _get_path(opened: OpenPath) -> SharedPath:
    if opened.is_folder:
        raise Unreadable(f"{opened.name} is a folder, not a file.")
    return SharedPath(opened.path)


def _explain_missing(value: str, folders: SharedFolders) -> str:
    meant = suggest(value, folders.list_files())
    if meant is None:
        return "there is no such file: write it relative to the notebook's folder"
    return f"there is no such file, but there is {meant!r}"


def _refuse(reason: str) -> PydanticCustomError:
    text = reason.replace("The file", "the file", 1).removesuffix(".")
    return PydanticCustomError("shared_path", "{reason}", {"reason": text})
