"""``mcp-notebook list --skills DIR``: writes the skills of notebooks to a folder.

Talks to kernels over their link, without MCP. Each skill becomes a folder of its name, as the Agent
Skills specification wants it. What a notebook says is data: a name never leads out of the folder,
and a file that is there is overwritten only with ``--force``.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_notebook.errors import SkillError
from mcp_notebook.text.terminal import print_note, print_output

if TYPE_CHECKING:
    from mcp_notebook.bridge.kernels.catalog import CatalogEntry
    from mcp_notebook.settings.settings import Settings

_PATH = re.compile(r"[a-z0-9-]{1,64}(?:/[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?){1,5}")
"""The path of a skill's file; a kernel allows no other, but may be older or something else."""
_NO_SKILLS = (
    "No open notebook has a skill. Begin a cell with `%%mcp_skill NAME` and write Markdown below, "
    "or name a notebook: `--notebook FILE.ipynb`."
)


async def export_skills(
    settings: "Settings", folder: Path, notebook: Path | None, *, force: bool = False
) -> None:
    """Write the skills of a notebook, or of all open notebooks, and print the files.

    Raises:
        NotebookError: The notebook cannot be run.
        SkillError: A file cannot be written, or is there and differs.
    """
    from mcp_notebook.bridge.shell_kernels import link_kernels

    async with link_kernels(settings, notebook) as kernels:
        for failure in kernels.failures:
            print_note(str(failure))
        texts = find_texts(kernels.catalog.entries("resource"))
    if not texts:
        print_note(_NO_SKILLS)
    for file in write_files(folder, texts, force=force):
        print_output(str(file))


def find_texts(entries: Iterable["CatalogEntry"]) -> dict[str, str]:
    """Return the texts of the skills' files, by their paths below the folder of all skills.

    Raises:
        SkillError: Two notebooks have a skill of the same name.
    """
    texts: dict[str, str] = {}
    notebooks: dict[str, str] = {}
    for entry in entries:
        path, text = entry.tool.name, entry.tool.text
        if text is None or not _PATH.fullmatch(path):
            continue
        skill = path.partition("/")[0]
        other = notebooks.setdefault(skill, entry.notebook)
        if other != entry.notebook:
            raise SkillError(
                f"The notebooks {other!r} and {entry.notebook!r} both have a skill {skill!r}. "
                "Export those of one notebook: `--notebook NAME`."
            )
        texts[path] = text
    return texts


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool) -> list[Path]:
    """Write texts below a folder, and return the files that were written.

    Raises:
        SkillError: A file cannot be written, or differs and `force` is not set; nothing is written
            in the second case.
    """
    files = {folder / path: text.encode() for path, text in texts.items()}
    try:
        for file in files:
            _check_place(folder, file)
        changed = {file: data for file, data in files.items() if _read(file) != data}
        foreign = [str(file) for file in changed if file.exists()]
        if foreign and not force:
            raise SkillError(
                f"Nothing was written, because these files differ from the notebook's: "
                f"{', '.join(foreign)}. Move them away, or overwrite them with `--force`."
            )
        for file, data in changed.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    except OSError as error:
        raise SkillError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}."
        ) from None
    return list(changed)


def _check_place(folder: Path, file: Path) -> None:
    """Refuse a file that is reached through a link, which may lead anywhere."""
    place = file
    while place != folder:
        if place.is_symlink():
            raise SkillError(
                f"Nothing was written: {place} is a symbolic link. Remove it, or name another "
                "folder."
            )
        place = place.parent


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
