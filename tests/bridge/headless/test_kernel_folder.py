"""The folders of kernels, and what bridges that were killed have left of them."""

import json
import os
import signal
import socket
import sys
import tempfile

import pytest
from bridges import bridge

from mcp_notebook.bridge.headless.kernel_folder import claim_folder, make_kernel_folder
from mcp_notebook.discovery.records import read_start_time
from mcp_notebook.settings.private_files import write_private

OWN = os.getpid()


@pytest.fixture
def leave(tmp_path):
    """Makes what a bridge of this pid and start has left."""

    def make(pid=OWN, late=0.0, name="mcpnb-old", host=None):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "kernel.json").write_text("a key")
        started = (read_start_time(pid) or 0) + late
        owner = {"pid": pid, "started": started, "host": host or socket.gethostname()}
        write_private(folder / "owner.json", json.dumps(owner))
        return folder

    return make


@pytest.fixture
def folder(tmp_path):
    """A new folder beside those that were left."""
    folder = tmp_path / "mcpnb-new"
    folder.mkdir()
    return folder


def test_the_folder_is_the_users_alone_and_goes_with_the_block(home, monkeypatch):
    (place := home / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with make_kernel_folder() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "kernel.json").touch()
    assert list(place.iterdir()) == []


def test_what_a_process_that_ended_has_left_goes_at_the_next_start(leave, folder):
    gone = [leave(pid=2**31), leave(late=-3600, name="mcpnb-reused")]
    claim_folder(folder)
    assert [left.exists() for left in gone] == [False, False]


def test_the_folders_of_live_processes_and_of_others_are_left_alone(tmp_path, leave, folder):
    live = leave()
    other = leave(pid=2**31, name="theirs")
    elsewhere = leave(pid=2**31, name="mcpnb-elsewhere", host="another machine")
    unknown = tmp_path / "mcpnb-tests"
    unknown.mkdir()
    link = tmp_path / "mcpnb-link"
    link.symlink_to(other)
    (tmp_path / "mcpnb-file").touch()
    bad = leave(name="mcpnb-bad")
    (bad / "owner.json").write_text('{"pid": -5}')
    claim_folder(folder)
    left = {live, other, elsewhere, unknown, link, bad, tmp_path / "mcpnb-file", folder}
    assert set(tmp_path.iterdir()) == left
    assert (other / "kernel.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="users")
def test_the_folder_of_another_user_is_left_alone(leave, folder, monkeypatch):
    gone = leave(pid=2**31)
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    claim_folder(folder)
    assert gone.exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_bridge_that_was_killed_leaves_a_folder_that_the_next_one_removes(home):
    (home / "sums.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": "import time; time.sleep(600)", "metadata": {},'
        ' "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4,'
        ' "nbformat_minor": 4}'
    )
    (home / "t").mkdir()
    folders = []
    for _ in range(2):
        with bridge(
            home, "list", "--notebook", str(home / "sums.ipynb"), env={"TMPDIR": str(home / "t")}
        ) as running:
            running.wait_said("cell 1 of 1")
            folders.append({path.name for path in (home / "t").glob("mcpnb-*")})
            running.end(signal.SIGKILL)
    assert [len(names) for names in folders] == [1, 1]
    assert not folders[0] & folders[1]
