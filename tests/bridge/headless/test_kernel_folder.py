import tempfile

from mcp_notebook.bridge.headless.kernel_folder import make_kernel_folder


def test_the_folder_is_the_users_alone_and_goes_with_the_block(tmp_path, monkeypatch):
    monkeypatch.setattr("mcp_notebook.bridge.headless.kernel_folder._LONGEST_TMP", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with make_kernel_folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "kernel.json").touch()
    assert list(tmp_path.iterdir()) == []
