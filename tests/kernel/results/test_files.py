"""What paths of files become, and which files are never opened."""

import codecs
import contextlib
import io
import json
import os
import socket
import wave
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from live import Link, record_of, text_of

from mcp_notebook.content import Audio, Image, Resource, ResourceLink, Result, Text
from mcp_notebook.errors import CallError
from mcp_notebook.kernel.link.resource_store import ResourceStore
from mcp_notebook.kernel.results import files
from mcp_notebook.kernel.results.converter import Converter
from mcp_notebook.settings import Settings
from mcp_notebook.wire import content_blocks

FORMATTER = DisplayFormatter()
SMALL = Settings(max_result_chars=1_000, max_picture_bytes=2_048)
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The notebook's folder."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def made(folder, store):
    """Return the blocks of a value."""

    def blocks(value, **limits):
        converter = Converter(DisplayFormatter().format, Settings(**limits), keep=store.keep)
        return list(converter.make_result(value, ()).content)

    return blocks


@pytest.fixture
def said(made):
    """Return the one text of a value."""

    def text(value, **limits):
        [block] = made(value, **limits)
        return block.text

    return text


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def picture(kind="png", size=(4, 4)):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", size, "red").save(data := io.BytesIO(), kind)
    return data.getvalue()


# -- content by type -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "plain"),
        ("a.md", "# Title\n\ntext"),
        ("a.csv", "a,b\n1,2\n"),
        ("a.json", '{"a": 1}'),
        ("a.py", "def f(): ..."),
        ("a.ts", "let a = 1"),
        ("LICENSE", "may be used"),
        ("a.xyz", "no known type, ä"),
    ],
)
def test_a_texts_file_is_its_text(folder, said, name, content):
    assert said(written(folder / name, content)) == content


def test_a_path_may_be_relative_or_any_path_like_but_a_text_is_a_text(folder, said):
    written(folder / "a.txt", "content")

    class Like:
        def __fspath__(self):
            return "a.txt"

    assert said(Path("a.txt")) == said(Like()) == "content"
    [entry] = os.scandir(folder)
    assert said(entry) == "content"
    assert said("a.txt") == said(PurePosixPath("a.txt")) == "a.txt"


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_a_pictures_file_is_the_picture_whatever_its_name(folder, made, kind):
    data = picture(kind)
    for name in (f"a.{kind}", "a.dat"):
        assert made(written(folder / name, data)) == [Image(data, f"image/{kind}")]


def test_a_picture_that_clients_cannot_show_becomes_one_that_they_can(folder, made):
    [block] = made(written(folder / "scan.tiff", picture("tiff")))
    assert block.data.startswith(b"\x89PNG")


def test_a_file_that_only_pretends_to_be_a_picture_is_a_sentence_or_its_text(folder, said):
    assert "picture" in said(written(folder / "a.png", b"\x89PNG\r\n\x1a\n broken \0"))
    assert said(written(folder / "b.png", "<html>404</html>")) == "<html>404</html>"


def test_a_sounds_file_is_the_sound(folder, made):
    with wave.open(str(folder / "a.wav"), "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(bytes(200))
    data = (folder / "a.wav").read_bytes()
    assert made(folder / "a.wav") == [Audio(data, "audio/wav")]
    [text, link] = made(written(folder / "b.mp3", b"ID3" + bytes(5_000)), max_picture_bytes=2_048)
    assert "b.mp3 (audio/mpeg, 5 kB) is too large" in text.text
    assert link.mime_type == "audio/mpeg"


def test_html_is_shown_as_displays_are_with_a_link_to_its_source(folder, made, store):
    source = "<html><script>x()</script><p>One</p><p>Two</p></html>"
    [text, link] = made(written(folder / "a.html", source))
    assert "One" in text.text
    assert "script" not in text.text
    assert store.find_format(link.uri).content() == source


def test_a_page_that_is_too_large_to_be_read_is_a_link(folder, made):
    [text, link] = made(written(folder / "a.html", "<p>a" * 300_000))
    assert "a.html (text/html, 1.2 MB) is too large to be part of the result" in text.text
    assert link.name == "a.html"


def test_a_notebooks_file_is_its_cells_and_what_they_showed(folder, made):
    from base64 import b64encode  # noqa: PLC0415 - for this test alone

    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["10%\r", "done\n"]},
        {
            "output_type": "display_data",
            "data": {"image/png": b64encode(picture()).decode(), "text/plain": "<Figure>"},
        },
        {"output_type": "execute_result", "data": {"text/plain": ["4", "2"]}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Sales\n", "of 2024"]},
        {"cell_type": "code", "source": "6 * 7", "outputs": outputs},
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    first, shown, last, link = made(written(folder / "a.ipynb", notebook))
    assert first.text == "# Sales\nof 2024\n\n```python\n6 * 7\n```\n\ndone"
    assert shown == Image(picture(), "image/png")
    assert last.text == "42\n\nValueError: no"
    assert link.name == "a.ipynb"


@pytest.mark.parametrize("source", ["", "{}", "[1]", '{"cells": [3]}', "no JSON", "[" * 100_000])
def test_a_notebook_that_is_none_is_its_text(folder, said, source):
    text = said(written(folder / "a.ipynb", source), max_result_chars=200_000)
    assert text == (source or "[The file " + str(folder / "a.ipynb") + " is empty.]")


@pytest.mark.parametrize(
    ("name", "content", "mime_type"),
    [
        ("report.pdf", PDF, "application/pdf"),
        ("report.pdf", b"%PDF-1.4 all ASCII", "application/pdf"),
        ("a.bin", b"\0\1\2", "application/octet-stream"),
        ("a.fits", b"HEADER " * 2_000 + bytes(100), "image/fits"),
        ("a.csv.gz", b"\x1f\x8b\0", "application/gzip"),
        ("a b.zip", b"PK\3\4\0", "application/zip"),
    ],
)
def test_a_small_file_of_another_kind_is_embedded(folder, made, name, content, mime_type):
    path = written(folder / name, content)
    assert made(path) == [Resource(path.as_uri(), content, mime_type)]


def test_a_large_file_of_another_kind_is_a_link_that_holds_no_memory(folder, made, store):
    content = PDF + bytes(5_000)
    path = written(folder / "report.pdf", content)
    [text, link] = made(path, max_picture_bytes=2_048, max_resource_bytes=0)
    assert text.text == (
        f"[The file {path} (application/pdf, 5.01 kB) is too large to be part of the result: read "
        "it by the link that follows.]"
    )
    assert (link.name, link.mime_type, link.size) == ("report.pdf", "application/pdf", 5_015)
    assert store.find_format(link.uri).content() == content
    [entry] = store._entries.values()
    assert entry.original.cost == 0


def test_a_linked_file_that_changed_or_went_says_so(folder, made, store):
    path = written(folder / "a.bin", bytes(5_000))
    [_, link] = made(path, max_picture_bytes=2_048)
    read = store.find_format(link.uri).content
    path.write_bytes(bytes(5_001))
    with pytest.raises(CallError, match="has changed since the result"):
        read()
    path.unlink()
    with pytest.raises(CallError, match="There is no file"):
        read()
    path.mkdir()
    with pytest.raises(CallError, match="only files are"):
        read()


# -- long texts ------------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_the_whole_file_is_a_link(folder, made, store):
    rows = [f"{i},{i * i}" for i in range(300)]
    path = written(folder / "a.csv", "\n".join(rows))
    [text, link] = made(path, max_result_chars=1_000)
    assert len(text.text) <= 1_000
    assert text.text.startswith("0,0\n1,1\n")
    assert text.text.endswith("299,89401")
    assert "left out" in text.text
    assert store.find_format(link.uri).content() == path.read_text()
    assert link.mime_type == "text/csv"


def test_of_a_very_long_text_the_first_and_last_lines_are_read(folder, made):
    rows = [f"{i},ä" for i in range(100_000)]
    [text, link] = made(written(folder / "a.csv", "\n".join(rows)), max_result_chars=1_000)
    head, marker, tail = text.text.partition(
        "\n[... the middle of 888,889 bytes is left out ...]\n"
    )
    assert marker
    assert head.split("\n") == rows[: len(head.split("\n"))]
    assert tail.split("\n") == rows[-len(tail.split("\n")) :]
    assert 700 < len(text.text) <= 1_000
    assert isinstance(link, ResourceLink)


def test_a_file_of_ten_gigabytes_is_not_read(folder, made, said, monkeypatch):
    path = folder / "huge.txt"
    with path.open("wb") as file:
        file.write(b"first line\n" * 2_000)
        file.seek(10 * 10**9 - 20_000)  # all between takes no room on the disk
        file.write(b"last line\n" * 2_000)
    [text] = made(path, max_result_chars=1_000)
    assert text.text.startswith("first line\nfirst line\n")
    assert text.text.endswith("last line\nlast line\n")
    assert "the middle of 10,000,000,000 bytes is left out" in text.text
    with (path := folder / "huge.bin").open("wb") as file:
        file.truncate(10 * 10**9)
    assert said(path) == (
        f"[The file {path} (application/octet-stream, 10 GB) is too large to be sent, at most "
        "105 MB.]"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (codecs.BOM_UTF8 + b"a", "a"),
        ("Größe".encode("utf-16"), "Größe"),
        ("Größe".encode("utf-32"), "Größe"),
        ("Größe;1".encode("cp1252"), "Größe;1"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_the_encoding_is_recognised(folder, said, content, text):
    assert said(written(folder / "a.csv", content)) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_a_long_text_may_be_cut_in_any_encoding(folder, made, encoding):
    lines = [f"Größe {i}" for i in range(5_000)]
    path = written(folder / "a.txt", "\n".join(lines).encode(encoding))
    [text, _] = made(path, max_result_chars=500)
    shown = [line for line in text.text.split("\n") if "left out" not in line]
    assert set(shown) <= set(lines)
    assert len(shown) > 20


def test_empty_files_and_white_space_are_said_to_be_so(folder, said):
    assert said(written(folder / "a.txt", "")) == f"[The file {folder / 'a.txt'} is empty.]"
    assert "nothing but white space" in said(written(folder / "a.txt", " \n "))


# -- lists, dicts, results -------------------------------------------------------------------------


def test_paths_in_lists_and_dicts_are_named(folder, made):
    a, b = written(folder / "a.txt", "first"), written(folder / "b.png", picture())
    blocks = made([a, b, "end"])
    assert blocks == [
        Text(f"{a}:\nfirst\n\n{b}:"),
        Image(picture(), "image/png"),
        Text("end"),
    ]
    assert made({"log": a, "n": 1}) == [Text("log:\nfirst\n\nn: 1")]
    assert made(Result([a, "text"])) == [Text("first"), Text("text")]


def test_many_paths_are_a_listing(folder, said):
    paths = [written(folder / f"{i}.txt", f"content {i}") for i in range(files.MAX_FILES + 1)]
    assert json.loads(said(paths)) == [str(path) for path in paths]
    assert "content 0" in said(paths[:-1])


def test_deeper_in_data_a_path_is_its_text(folder, said):
    path = written(folder / "a.txt", "content")
    assert json.loads(said({"files": [path]})) == {"files": [str(path)]}


def test_blocks_take_paths_and_keep_what_they_say(folder, made):
    path = written(folder / "a.png", picture())
    assert made(Image(path, audience="user")) == [Image(picture(), "image/png", audience=("user",))]
    log = written(folder / "a.txt", "content")
    assert made(Text(log, priority=1)) == [Text("content", priority=1)]


# -- what is never opened --------------------------------------------------------------------------


def test_what_is_outside_is_named_with_the_setting(folder, tmp_path, said):
    secret = written(tmp_path / "secret.txt", "secret")
    told = (
        f"is outside of the notebook's folder ({folder}) and the allowed roots. To allow it, run "
        f"`%env MCP_NOTEBOOK_ALLOWED_ROOTS={tmp_path}`, `%reload_ext mcp_notebook` and the tools' "
        "cells again in the notebook, or set that variable before Jupyter starts.]"
    )
    assert said(secret) == f"[The file {secret} is not shown: it {told}"
    assert said(Path("../secret.txt")) == f"[The file ../secret.txt is not shown: it {told}"
    assert told in said(Path("x/../../secret.txt"))
    assert told in said(tmp_path / "there is none")
    (folder / "link.txt").symlink_to(secret)
    assert said(Path("link.txt")) == (
        f"[The file link.txt is not shown: it leads to {secret}, which {told}"
    )
    (folder / "folder").symlink_to(tmp_path)
    assert f"leads to {secret}, which" in said(Path("folder/secret.txt"))
    assert "outside" in said(Path("folder"))


def test_a_folder_whose_name_begins_alike_is_outside(folder, said):
    other = folder.with_name("notebook2")
    other.mkdir()
    assert "outside" in said(written(other / "a.txt", "secret"))


def test_allowed_roots_are_allowed(folder, tmp_path, said):
    other = tmp_path / "other"
    other.mkdir()
    shared = written(other / "a.txt", "shared")
    assert said(shared, allowed_roots=(other,)) == "shared"
    assert said(Path("../other/a.txt"), allowed_roots=(tmp_path / "none", Path("../other"))) == (
        "shared"
    )
    (folder / "link.txt").symlink_to(shared)
    assert said(folder / "link.txt", allowed_roots=(other,)) == "shared"
    text = said(tmp_path / "a.txt", allowed_roots=(other,))
    assert f"MCP_NOTEBOOK_ALLOWED_ROOTS={other}{os.pathsep}{tmp_path}`" in text


def test_the_folder_is_that_of_when_the_extension_was_loaded(folder, tmp_path, monkeypatch):
    converter = Converter(DisplayFormatter().format, Settings())
    written(folder / "a.txt", "content")
    written(tmp_path / "b.txt", "content")
    monkeypatch.chdir(tmp_path)
    assert converter.make_result(folder / "a.txt", ()).content == [Text("content")]
    assert "outside" in converter.make_result(Path("b.txt"), ()).content[0].text


def test_a_kernel_in_the_root_folder_allows_nothing(folder, monkeypatch, said):
    path = written(folder / "a.txt", "content")
    monkeypatch.chdir("/")
    assert "is outside of the notebook's folder and the allowed roots" in said(path)
    assert said(path, allowed_roots=(folder,)) == "content"
    assert "a view of the system's" in said(Path("/proc/self/environ"), allowed_roots=(Path("/"),))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_sockets_and_devices_are_never_waited_for(folder, said, tmp_path, monkeypatch):
    os.mkfifo(folder / "pipe")
    assert said(Path("pipe")) == "[pipe is not shown: it is a pipe, and only files are.]"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")  # a whole path may be too long
        assert "it is a socket" in said(Path("socket"))
    assert "it is a device" in said(Path("/dev/zero"), allowed_roots=(Path("/dev"),))


def test_a_pipe_that_takes_a_files_place_is_not_waited_for(folder, said, monkeypatch):
    path = written(folder / "a.txt", "content")
    status = os.lstat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(files.os, "lstat", lambda _path: status)
    assert "it is a pipe" in said(path)


def test_folders_missing_files_and_odd_names_are_sentences(folder, said):
    (folder / "data").mkdir()
    written(folder / "data" / "a.txt", "a")
    assert said(Path("data")).startswith("[data is a folder with 1 entry. The tool's author can")
    assert said(Path("none.txt")) == (
        f"[There is no file none.txt; it would be {folder / 'none.txt'}.]"
    )
    assert "`.expanduser()`" in said(Path("~/none.txt"))
    assert "null" in said(Path("a\0b"))
    assert "cannot be read: File name too long" in said(Path("x" * 5_000))
    (folder / "loop").symlink_to("loop")
    assert "is a link to itself" in said(Path("loop"))


def test_names_that_are_no_unicode_do_no_harm(folder, made):
    odd = written(folder / os.fsdecode(b"\xff.bin"), bytes(3_000))
    [block] = made(odd)
    assert block.uri.endswith("/%FF.bin")
    [text, link] = made(odd, max_picture_bytes=2_048)
    assert "\ufffd.bin" in text.text
    assert link.name == "\ufffd.bin"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all files")
def test_a_file_that_may_not_be_read_is_a_sentence(folder, said):
    path = written(folder / "a.txt", "a")
    path.chmod(0)
    assert "cannot be read: Permission denied" in said(path)


def test_a_path_whose_own_code_fails_is_a_sentence(said):
    class Odd:
        def __fspath__(self):
            raise RuntimeError("no path today")

    class Number:
        def __fspath__(self):
            return 5

    assert said(Odd()) == "[An object of type Odd is not a path: RuntimeError: no path today.]"
    assert "An object of type Number is not a path: TypeError" in said(Number())


def test_a_tool_of_a_live_kernel_returns_files_of_its_notebooks_folder(shared_kernel):
    shared_kernel.ok(
        "%%mcp_tool\n"
        "from pathlib import Path\n"
        "def notes() -> Path:\n    'Notes.'\n"
        "    Path('notes.md').write_text('# Notes')\n    return Path('notes.md')\n"
        "def hosts():\n    'Outside.'\n    return Path('/etc/hosts')\n"
    )
    with Link(record_of(shared_kernel)) as link:
        result = link.call("notes")
        assert (text_of(result), result.structured) == ("# Notes", None)
        said = text_of(link.call("hosts"))
    assert f"outside of the notebook's folder ({os.path.realpath(shared_kernel.home)})" in said


@settings(deadline=None, max_examples=150)
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
        path = written(
            Path(folder) / os.fsdecode(f"a{suffix}".encode("utf-8", "replace")),
            beginning + content * times,
        )
        store = ResourceStore("k", 10**9)
        converter = Converter(FORMATTER.format, SMALL, keep=store.keep)
        result = converter.make_result(path, ())
        message, attachments = content_blocks.pack_result(1, result)
        message.model_dump_json().encode()
        assert list(content_blocks.unpack_result(message, attachments).content) == list(
            result.content
        )
        assert sum(len(block.text) for block in result.content if isinstance(block, Text)) <= 1_000
        for link in store.links:
            assert isinstance(store.find_format(link.uri).content(), str | bytes)
