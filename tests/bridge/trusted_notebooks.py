"""Signs notebooks, as Jupyter does with those that it trusts."""

from contextlib import closing
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary


def sign(path: Path, folder: Path) -> None:
    """Sign a notebook as ``jupyter trust`` does, with what is in a folder of Jupyter's data."""
    notary = NotebookNotary(data_dir=str(folder))
    with closing(notary.store):
        notary.sign(nbformat.read(path, nbformat.NO_CONVERT))
