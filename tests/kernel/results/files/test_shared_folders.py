"""Which files results show, what a client hears of the others, and what takes a file's place."""

import ast
import os
import stat
import threading
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from sample_files import write_file

from mcp_notebook.errors import CallError
from mcp_notebook.kernel.results.files.shared_folders import (
    MAX_REFUSED,
    RefusedFiles,
    SharedFolders,
)

SHARED, SECRET = "shared text", "secret text"
READS = 300
"""Of a file that is swapped all the time. One in 25 got the other file where only names were
checked."""


@pytest.fixture
def secret(tmp_path):
    """A file outside the notebook's folder, in a folder of its own."""
    (tmp_path / "outside").mkdir()
    return write_file(tmp_path / "outside" / "a.txt", SECRET)


@pytest.fixture
def data(folder):
    """A folder in the notebook's, with a file."""
    (folder / "data").mkdir()
    write_file(folder / "data" / "a.txt", SHARED)
    return folder / "data"


@pytest.fixture
def swap_after_check(monkeypatch):
    """Return a function that has a folder replaced once a path in it has been resolved."""

    def prepare(data, other):
        resolve = os.path.realpath

        def resolve_and_swap(path, **options):
            resolved = resolve(path, **options)
            if Path(path).parent == data and not data.is_symlink():
                data.rename(data.with_name("moved"))
                data.symlink_to(other)
            return resolved

        monkeypatch.setattr(os.path, "realpath", resolve_and_swap)

    return prepare


def open_text(folders, path):
    """Return the text of a file, or the sentence for the client."""
    try:
        return folders.read(path, lambda opened: os.read(opened.descriptor, 1_000).decode())
    except CallError as error:
        return str(error)


# -- our own files, hidden files -------------------------------------------------------------------


def test_nothing_in_our_own_home_is_shown_even_if_it_is_allowed(folder, to_text):
    own = folder / "own"
    (own / "kernels").mkdir(parents=True)
    token = write_file(own / "token", SECRET)
    record = write_file(own / "kernels" / "a.json", SECRET)
    (folder / "link").symlink_to(own)
    os.link(token, folder / "copy.txt")
    paths = [token, record, own, folder / "link" / "token", folder / "copy.txt", own / "none"]
    for path in paths:
        for allowed in [(), (own,), (token, record)]:
            text = to_text(path, home=own, allowed_roots=allowed)
            assert "outside the folders that the notebook shares" in text
    assert to_text(token, home=folder / "other") == SECRET


def test_the_file_with_the_token_is_not_shown_wherever_it_is(folder, to_text):
    token = write_file(folder / "token.txt", SECRET)
    text = to_text(token, token_file=token, allowed_roots=(token,))
    assert "outside the folders that the notebook shares" in text


def test_hidden_files_are_shown_only_if_a_root_names_them(folder, to_text):
    (folder / ".ssh").mkdir()
    key = write_file(folder / ".ssh" / "id_rsa", SECRET)
    environment = write_file(folder / ".env", SECRET)
    (folder / "link.txt").symlink_to(key)
    (folder / "keys").symlink_to(".ssh")
    for path in [key, environment, folder / ".ssh", folder / "link.txt", folder / "keys/id_rsa"]:
        assert "outside the folders that the notebook shares" in to_text(path)
        assert "outside the folders" in to_text(path, allowed_roots=(folder,))
    missing = to_text(Path(".none/a.txt"))
    assert "outside the folders that the notebook shares" in missing  # not whether there is one
    assert to_text(environment, allowed_roots=(environment,)) == SECRET
    assert to_text(folder / "link.txt", allowed_roots=(folder / ".ssh",)) == SECRET
    deeper = folder / ".ssh" / ".old"
    deeper.mkdir()
    text = to_text(write_file(deeper / "id_rsa", SECRET), allowed_roots=(folder / ".ssh",))
    assert "outside the folders that the notebook shares" in text


def test_a_notebook_in_a_hidden_folder_shows_its_files(tmp_path, monkeypatch, to_text):
    folder = tmp_path / ".work" / "notebook"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert to_text(write_file(folder / "a.txt", SHARED)) == SHARED


@pytest.mark.skipif(not hasattr(os, "chflags"), reason="files are hidden by their names here")
def test_a_folder_that_the_system_hides_is_hidden(folder, to_text):
    (folder / "Library").mkdir()
    path = write_file(folder / "Library" / "a.txt", SECRET)
    os.chflags(folder / "Library", stat.UF_HIDDEN)
    assert "outside the folders that the notebook shares" in to_text(path)
    assert to_text(path, allowed_roots=(folder / "Library",)) == SECRET


# -- what takes a file's place ---------------------------------------------------------------------


def test_a_link_that_takes_a_folders_place_is_not_followed(data, secret, to_text, swap_after_check):
    swap_after_check(data, secret.parent)
    text = to_text(data / "a.txt")
    assert data.is_symlink()
    assert SECRET not in text
    assert "cannot be read" in text


def test_a_folder_behind_a_link_is_not_even_counted(data, secret, to_text, swap_after_check):
    (data / "a.txt").unlink()
    (data / "a.txt").mkdir()
    (secret.parent / "a.txt").unlink()
    (secret.parent / "a.txt").mkdir()
    swap_after_check(data, secret.parent)
    assert "entries" not in to_text(data / "a.txt")


def test_a_linked_file_is_read_later_only_where_it_was(
    data, secret, convert, store, swap_after_check
):
    path = write_file(data / "a.txt", SHARED * 1_000)
    [_, link] = convert(path, max_result_chars=1_000)
    # Even the same file: it is the place that is not shared any more.
    secret.unlink()
    os.link(path, secret)
    swap_after_check(data, secret.parent)
    with pytest.raises(CallError, match="cannot be read"):
        store.find_format(link.uri).content()
    assert data.is_symlink()
    with pytest.raises(CallError, match="outside the folders that the notebook shares") as raised:
        store.find_format(link.uri).content()
    assert str(secret.parent) not in str(raised.value)


def test_a_file_that_is_swapped_all_the_time_is_never_the_other_one(data, secret):
    folders = SharedFolders(data.parent)
    (data.parent / "link").symlink_to(secret.parent)
    stopped = threading.Event()

    def swap():
        link, free = data.with_name("link"), data.with_name("free")
        while not stopped.is_set():
            data.rename(free)
            link.rename(data)
            data.rename(link)
            free.rename(data)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        texts = [open_text(folders, data / "a.txt") for _ in range(READS)]
    finally:
        stopped.set()
        swapper.join()
    assert SECRET not in texts


def test_where_folders_cannot_be_opened_a_link_in_a_folders_place_is_noticed(
    data, secret, to_text, swap_after_check, monkeypatch
):
    monkeypatch.setattr("mcp_notebook.kernel.results.files.shared_folders._CAN_WALK", False)
    assert to_text(data / "a.txt") == SHARED
    assert "is a folder." in to_text(data)
    swap_after_check(data, secret.parent)
    assert "it was replaced" in to_text(data / "a.txt")


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="such a folder cannot be opened here")
def test_folders_that_cannot_be_listed_can_lie_above(folder, to_text):
    (folder / "closed" / "data").mkdir(parents=True)
    path = write_file(folder / "closed" / "data" / "a.txt", SHARED)
    (folder / "closed").chmod(0o311)
    assert to_text(path) == SHARED


# -- what is said, and where -----------------------------------------------------------------------


def test_a_client_is_told_only_that_a_file_is_not_shared(folder, secret, to_text):
    (folder / "link.txt").symlink_to(secret)
    (folder / "self").symlink_to("/proc/self")
    names = [str(secret), "link.txt", ".env", "../none", "self/environ"]
    for name in names:
        assert to_text(Path(name)) == (
            f"[The file {name} is not shared: it is outside the folders that the notebook shares. "
            "`%mcp status` in the notebook says why.]"
        )
    assert to_text(Path("none.txt")) == "[There is no file none.txt.]"


@pytest.mark.parametrize("name", ["{fired.append(1)}", "';fired.append(1)#", "$fired", "\u2028"])
def test_the_line_that_allows_a_folder_is_data_whatever_the_client_called_it(folder, name):
    folders = SharedFolders(folder, (), ())
    open_text(folders, Path("/nowhere") / name / "a.txt")
    line = folders.refused.list_reasons()[0].split("`")[1]
    (_, assignment) = ast.parse(TransformerManager().transform_cell(line)).body
    assert ast.literal_eval(assignment.value) == f"/nowhere/{name}"
    open_text(folders, Path("/nowhere:/etc") / "a.txt")
    assert "cannot be allowed: move the file." in folders.refused.list_reasons()[-1]


def test_the_notebook_hears_where_a_file_is_and_how_to_share_it(folder, tmp_path, secret):
    own = folder / "own"
    own.mkdir()
    token = write_file(own / "token", SECRET)
    allowed = tmp_path / "allowed"
    folders = SharedFolders(folder, (allowed,), (own,))

    def explain(path):
        before = folders.refused.count
        open_text(folders, path)
        [reason] = folders.refused.list_reasons(after=before)
        return reason

    def how(root):
        return (
            "To allow it, run `import os; os.environ['MCP_NOTEBOOK_ALLOWED_ROOTS'] = "
            f"'{allowed}{os.pathsep}{root}'` and `%reload_ext mcp_notebook` in the notebook, or "
            "set that variable before Jupyter starts."
        )

    outside = f"is outside the notebook's folder ({folder}) and the allowed roots. "
    outside += how(secret.parent)
    assert explain(secret) == f"The file {secret} is not shared: it {outside}"
    name = Path("x/../../outside/a.txt")
    assert explain(name) == f"The file {name} is not shared: it {outside}"
    (folder / "link.txt").symlink_to(secret)
    assert explain(Path("link.txt")) == (
        f"The file link.txt is not shared: it leads to {secret}, which {outside}"
    )
    assert explain(Path(".env")) == (
        f"The file .env is not shared: {folder / '.env'} is hidden. {how(folder / '.env')}"
    )
    assert explain(Path(".ssh/id_rsa")) == (
        f"The file .ssh/id_rsa is not shared: {folder / '.ssh/id_rsa'} is in a hidden folder. "
        f"{how(folder / '.ssh')}"
    )
    assert explain(token) == (
        f"The file {token} is not shared: {token} belongs to mcp-notebook and is never shared."
    )
    assert explain(Path("none.txt")) == (
        f"There is no file none.txt; it would be {folder / 'none.txt'}."
    )


def test_the_last_different_refusals_are_kept():
    refused = RefusedFiles()
    for i in range(MAX_REFUSED + 2):
        refused.add(f"reason {i}")
    refused.add("reason 4")
    kept = refused.list_reasons()
    assert len(kept) == MAX_REFUSED
    assert (kept[0], kept[-1]) == ("reason 2", "reason 4")
    assert refused.list_reasons(after=refused.count - 1) == ["reason 4"]
    assert refused.list_reasons(after=refused.count) == []


def test_a_notebook_at_the_top_of_the_home_folder_is_warned(tmp_path, monkeypatch):
    home = tmp_path / "me"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert f"({home}) is your home folder" in SharedFolders(home).describe_home()
    assert f"({tmp_path}) contains your home" in SharedFolders(tmp_path).describe_home()
    assert SharedFolders(home / "work").describe_home() is None
    assert SharedFolders(None).describe_home() is None
    assert SharedFolders(home / "work", (home,)).describe_home() is None  # who asks for it knows
