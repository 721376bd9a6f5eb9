"""The pictures of the guide to live views: those that the tests of views take in Chromium."""

import subprocess
import sys
from pathlib import Path

from pictures.first_page import write_png
from pictures.plot_rain import ROOT
from PIL import Image

TESTS = ROOT / "tests" / "browser"
PICTURES = {
    "view_table.png": ("readable and light and 720", "view_table_light_720.png"),
    "view_plot.png": ("plotly_plot", "view_plotly_plot.png"),
}
"""By the name of each picture: its test, as ``pytest -k`` names it, and what that writes."""


def photograph_views(folder: Path) -> None:
    """Make the pictures in a folder."""
    for name, (test, shot) in PICTURES.items():
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "browser"]
        command += [str(TESTS / "test_views.py"), "-k", test]
        subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - our own tests
        with Image.open(TESTS / "screenshots" / shot) as picture:
            (folder / name).write_bytes(write_png(picture))
