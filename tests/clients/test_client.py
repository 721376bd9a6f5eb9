"""Where programs keep their settings on a machine."""

from pathlib import Path

import pytest

from mcp_notebook.clients.client import Machine

HOME = Path("/home/ada")


def machine(platform, **env):
    return Machine(platform=platform, home=HOME, folder=HOME / "work", env=env)


@pytest.mark.parametrize(
    ("platform", "env", "expected"),
    [
        ("linux", {}, HOME / ".config"),
        ("linux", {"XDG_CONFIG_HOME": "/etc/ada"}, Path("/etc/ada")),
        ("linux", {"XDG_CONFIG_HOME": ""}, HOME / ".config"),
        ("darwin", {}, HOME / "Library" / "Application Support"),
        ("darwin", {"XDG_CONFIG_HOME": "/etc/ada"}, HOME / "Library" / "Application Support"),
        ("win32", {"APPDATA": "/roaming"}, Path("/roaming")),
        ("win32", {}, HOME / "AppData" / "Roaming"),
    ],
)
def test_programs_keep_settings_where_the_platform_says(platform, env, expected):
    assert machine(platform, **env).app_data == expected


def test_the_current_machine_is_that_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    current = Machine.current()
    assert (current.home, current.folder) == (tmp_path, tmp_path)
    assert current.env["HOME"] == str(tmp_path)
