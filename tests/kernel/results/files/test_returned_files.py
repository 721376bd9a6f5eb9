"""What paths of files become, and which files are never opened."""

import contextlib
import os
import socket
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from live import Link, record_of, text_of
from sample_files import encode_image, write_file

from mcp_notebook.content import Image, Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results.blocks.budget import Budget
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings.settings import Settings
from mcp_notebook.wire import content_blocks, frames

FORMATTER = DisplayFormatter()
SMALL = Budget(chars=1_000, picture_bytes=2_048)
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


# -- content by type -------------------------------------------------------------------------------


def test_a_path_may_be_relative_or_any_path_like_but_a_text_is_a_text(folder, to_text):
    write_file(folder / "a.txt", "content")

    class Like:
        def __fspath__(self):
            return "a.txt"

    assert to_text(Path("a.txt")) == to_text(Like()) == "content"
    [entry] = os.scandir(folder)
    assert to_text(entry) == "content"
    assert to_text("a.txt") == to_text(PurePosixPath("a.txt")) == "a.txt"


def test_a_linked_file_that_changed_or_went_says_so(folder, convert, store):
    path = write_file(folder / "a.bin", bytes(5_000))
    [_, link] = convert(path, budget=Budget(picture_bytes=2_048))
    read = store.find_format(link.uri).content
    path.write_bytes(bytes(5_001))
    with pytest.raises(CallError, match="has changed since it was linked"):
        read()
    path.unlink()
    with pytest.raises(CallError, match="There is no file"):
        read()
    path.mkdir()
    with pytest.raises(CallError, match="it is a folder now"):
        read()


# -- long texts ------------------------------------------------------------------------------------


def test_a_file_of_ten_gigabytes_is_not_read(folder, convert, to_text, monkeypatch):
    path = folder / "huge.txt"
    with path.open("wb") as file:
        file.write(b"first line\n" * 2_000)
        file.seek(10 * 10**9 - 20_000)  # all between takes no room on the disk
        file.write(b"last line\n" * 2_000)
    [text, why] = convert(path, max_result_chars=1_000)
    assert why.text == "[A file of more than 105 MB cannot be read whole.]"
    assert text.text.startswith("first line\nfirst line\n")
    assert text.text.endswith("last line\nlast line\n")
    assert "the middle of 10,000,000,000 bytes is left out" in text.text
    with (path := folder / "huge.bin").open("wb") as file:
        file.truncate(10 * 10**9)
    assert to_text(path) == (
        f"[The file {path} (application/octet-stream, 10 GB) is too large to be sent: the limit is "
        "105 MB.]"
    )


# -- lists, dicts, results -------------------------------------------------------------------------


def test_paths_in_lists_and_dicts_are_named(folder, convert):
    a, b = write_file(folder / "a.txt", "first"), write_file(folder / "b.png", encode_image())
    blocks = convert([a, b, "end"])
    assert blocks == [
        Text(f"{a}:\nfirst\n\n{b}:"),
        Image(encode_image(), "image/png"),
        Text("end"),
    ]
    assert convert({"log": a, "n": 1}) == [Text("log:\nfirst\n\nn: 1")]
    assert convert(Result([a, "text"])) == [Text("first"), Text("text")]


def test_blocks_take_paths_and_keep_what_they_say(folder, convert):
    path = write_file(folder / "a.png", encode_image())
    assert convert(Image(path, audience="user")) == [
        Image(encode_image(), "image/png", audience=("user",))
    ]
    log = write_file(folder / "a.txt", "content")
    assert convert(Text(log, priority=1)) == [Text("content", priority=1)]


# -- what is never opened --------------------------------------------------------------------------


def test_what_is_outside_is_not_shown(folder, tmp_path, to_text):
    secret = write_file(tmp_path / "secret.txt", "secret")
    (folder / "link.txt").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    for path in [
        secret,
        Path("../secret.txt"),
        Path("x/../../secret.txt"),
        tmp_path / "there is none",
        Path("link.txt"),
        Path("folder/secret.txt"),
        Path("folder"),
    ]:
        assert f"The file {path} is not shared: it is outside the folders that the" in to_text(path)


def test_a_folder_whose_name_begins_alike_is_outside(folder, to_text):
    other = folder.with_name("notebook2")
    other.mkdir()
    assert "outside" in to_text(write_file(other / "a.txt", "secret"))


def test_allowed_roots_are_allowed(folder, tmp_path, to_text):
    other = tmp_path / "other"
    other.mkdir()
    shared = write_file(other / "a.txt", "shared")
    assert to_text(shared, allowed_roots=(other,)) == "shared"
    assert to_text(Path("../other/a.txt"), allowed_roots=(tmp_path / "none", Path("../other"))) == (
        "shared"
    )
    (folder / "link.txt").symlink_to(shared)
    assert to_text(folder / "link.txt", allowed_roots=(other,)) == "shared"
    assert "outside" in to_text(tmp_path / "a.txt", allowed_roots=(other,))


def test_the_folder_is_that_of_when_the_extension_was_loaded(folder, tmp_path, monkeypatch):
    converter = Converter(DisplayFormatter().format, Settings())
    write_file(folder / "a.txt", "content")
    write_file(tmp_path / "b.txt", "content")
    monkeypatch.chdir(tmp_path)
    assert converter.make_result(folder / "a.txt", ()).content == [Text("content")]
    assert "outside" in converter.make_result(Path("b.txt"), ()).content[0].text


def test_a_kernel_in_the_root_folder_allows_nothing(folder, monkeypatch, to_text):
    path = write_file(folder / "a.txt", "content")
    monkeypatch.chdir("/")
    assert "is outside the folders that the notebook shares" in to_text(path)
    assert to_text(path, allowed_roots=(folder,)) == "content"
    assert "a virtual file of the system" in to_text(
        Path("/proc/self/environ"), allowed_roots=(Path("/"),)
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_sockets_and_devices_are_never_waited_for(folder, to_text, tmp_path, monkeypatch):
    os.mkfifo(folder / "pipe")
    assert to_text(Path("pipe")) == "[pipe is not shared: it is a pipe, and only files are.]"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")  # a whole path may be too long
        assert "it is a socket" in to_text(Path("socket"))
    assert "it is a device" in to_text(Path("/dev/zero"), allowed_roots=(Path("/dev"),))


def test_what_takes_a_files_place_is_neither_followed_nor_waited_for(
    folder, tmp_path, to_text, monkeypatch
):
    path = write_file(folder / "a.txt", "content")
    status = os.lstat(path)
    look = os.stat

    def look_at_the_file(place, **options):
        return status if place == "a.txt" else look(place, **options)

    # It is a file when it is looked at, and something else when it is opened.
    monkeypatch.setattr(os, "stat", look_at_the_file)
    path.unlink()
    os.mkfifo(path)
    assert "it is a pipe" in to_text(path)
    monkeypatch.setattr(os.path, "realpath", os.path.abspath)
    path.unlink()
    path.symlink_to(write_file(tmp_path / "secret.txt", "do not show"))
    text = to_text(path)
    assert "do not show" not in text
    assert "a.txt cannot be read" in text


def test_folders_missing_files_and_odd_names_are_sentences(folder, to_text):
    (folder / "data").mkdir()
    write_file(folder / "data" / "a.txt", "a")
    assert to_text(Path("data")).startswith("[data is a folder. The tool's author can")
    assert to_text(Path("none.txt")) == "[There is no file none.txt.]"
    assert "`.expanduser()`" in to_text(Path("~/none.txt"))
    assert "null" in to_text(Path("a\0b"))
    assert "cannot be read: File name too long" in to_text(Path("x" * 5_000))
    (folder / "loop").symlink_to("loop")
    assert "is a link to itself" in to_text(Path("loop"))


def test_names_that_are_not_unicode_do_no_harm(folder, convert):
    odd = write_file(folder / os.fsdecode(b"\xff.bin"), bytes(3_000))
    [block] = convert(odd)
    assert block.uri.endswith("/%FF.bin")
    [text, link] = convert(odd, budget=Budget(picture_bytes=2_048))
    assert "\ufffd.bin" in text.text
    assert link.name == "\ufffd.bin"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all files")
def test_a_file_that_may_not_be_read_is_a_sentence(folder, to_text):
    path = write_file(folder / "a.txt", "a")
    path.chmod(0)
    assert "cannot be read: Permission denied" in to_text(path)


def test_a_path_whose_own_code_fails_is_a_sentence(to_text):
    class Odd:
        def __fspath__(self):
            raise RuntimeError("no path today")

    class Number:
        def __fspath__(self):
            return 5

    assert to_text(Odd()) == "[An object of type Odd is not a path: RuntimeError: no path today.]"
    assert "An object of type Number is not a path: TypeError" in to_text(Number())


@pytest.mark.smoke
def test_a_tool_of_a_live_kernel_returns_files_of_its_notebooks_folder(shared_kernel):
    shared_kernel.ok(
        "%%mcp_tool\n"
        "from pathlib import Path\n"
        "def notes() -> Path:\n    'Notes.'\n"
        "    Path('notes.md').write_text('# Notes')\n    return Path('notes.md')\n"
        "def hosts() -> Path:\n    'Outside.'\n    return Path('/etc/hosts')\n"
        "def both():\n    return [Path('notes.md'), Path('/etc/hosts')]\n"
        "def later():\n    return Path('not-yet.txt')\n"
    )
    with Link(record_of(shared_kernel)) as link:
        result = link.call("notes")
        assert (text_of(result), result.structured) == ("# Notes", None)
        refused = link.call("hosts")
        text = text_of(refused)
        assert refused.is_error
        both = link.call("both")
        assert (both.is_error, text_of(both).count("# Notes")) == (True, 1)
        assert not link.call("later").is_error
    assert text == (
        "[The file /etc/hosts is not shared: it is outside the folders that the notebook shares. "
        "`%mcp status` in the notebook says why.]"
    )
    explained = f"outside the notebook's folder ({os.path.realpath(shared_kernel.home)})"
    assert explained in shared_kernel.ok("%mcp status").text
    called = shared_kernel.ok("%mcp call hosts")
    assert explained not in called.stdout
    assert explained in called.stderr


@given(
    beginning=st.sampled_from(
        [b"", PDF, b"\x89PNG\r\n\x1a\n", b"RIFF....WAVE", b"<html><p>", b'{"cells": [', b"\xff\xfe"]
    ),
    content=st.one_of(st.binary(max_size=9_000), st.text(max_size=3_000).map(str.encode)),
    suffix=st.sampled_from(
        ["", ".txt", ".png", ".svg", ".html", ".ipynb", ".pdf", ".wav", ".gz", ".ts", ".\ud800"]
    ),
    times=st.sampled_from([1, 3]),
)
def test_any_file_gives_a_result_that_can_be_sent(beginning, content, suffix, times):
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = write_file(
            Path(folder) / os.fsdecode(f"a{suffix}".encode("utf-8", "replace")),
            beginning + content * times,
        )
        store = ResourceStore("k", 10**9)
        converter = Converter(FORMATTER.format, Settings(), budget=SMALL, keep=store.keep)
        result = converter.make_result(path, ())
        message, attachments = content_blocks.pack_result(1, result)
        frames.encode(message, attachments)
        assert list(content_blocks.unpack_result(message, attachments).content) == list(
            result.content
        )
        assert sum(len(block.text) for block in result.content if isinstance(block, Text)) <= 1_000
        for link in store.links:
            assert isinstance(store.find_format(link.uri).content(), str | bytes)
