"""The machine's own Chromium, not one that Playwright would download."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@contextmanager
def launched_chromium() -> Iterator[Browser]:
    """Start it without a window, and end it."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "There is no Chromium: `apt install chromium-headless-shell`."
    arguments = ["--disable-background-networking"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with (
        TemporaryDirectory(prefix="mcpnb-", ignore_cleanup_errors=True) as settings,
        sync_playwright() as playwright,
    ):
        env = os.environ | {"XDG_CONFIG_HOME": settings}
        browser = playwright.chromium.launch(executable_path=path, args=arguments, env=env)
        try:
            yield browser
        finally:
            browser.close()
