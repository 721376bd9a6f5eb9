"""The pictures of the guide to live views: those that the tests of views take in Chromium."""

import subprocess
import sys
from pathlib import Path

from pictures.first_page import write_png
from pictures.plot_rain import ROOT
from PIL import Image

TESTS = ROOT / "tests" / "browser"
PICTURES = {"view_table.png": "view_guide_table.png", "view_plot.png": "view_guide_plot.png"}
"""By the name of each picture: what the tests write."""


def photograph_views(folder: Path) -> None:
    """Make the pictures in a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "browser"]
    command += [str(TESTS / "test_views.py"), "-k", "guides_picture"]
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - our own tests
    for name, shot in PICTURES.items():
        with Image.open(TESTS / "screenshots" / shot) as picture:
            (folder / name).write_bytes(write_png(picture))
