"""Parameters for files that the notebook shares: what is refused before the function runs."""

import os
import pickle
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from live import Link, record_of, text_of
from pydantic import BaseModel
from sample_files import write_file

from mcp_notebook import SharedPath
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema

TOOLS = """
from concurrent.futures import ProcessPoolExecutor
from mcp_notebook import SharedPath, mcp_tool
ran = []
pool = ProcessPoolExecutor(1)
def size(path: SharedPath) -> str:
    'Tell the size.'
    ran.append(path)
    return f"{type(path).__name__} {path.name} {len(path.read_text())}"
for run in ["main", "thread", "fork"]:
    mcp_tool(name=run, run=run, read_only=True)(size)
mcp_tool(name="process", executor=pool)(size)
"""
PLAIN = {
    "type": "string",
    "format": "file-path",
    "description": "A file, relative to the notebook's folder.",
}


@dataclass
class Job:
    path: SharedPath


class Report(BaseModel):
    path: SharedPath | None = None


def read(path: SharedPath): ...
def read_all(paths: list[SharedPath]): ...
def read_job(job: Job): ...
def read_report(report: Report): ...


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The notebook's folder, with a file; a secret file is beside the folder."""
    folder = tmp_path / "notebook"
    (folder / "data").mkdir(parents=True)
    write_file(folder / "data" / "rain.csv", "mm\n1\n")
    write_file(tmp_path / "secret.txt", "secret")
    monkeypatch.chdir(folder)
    return folder


def validate(value, function=read, name="path"):
    return read_function_schema(function).validate({name: value})[name]


def refusal(value):
    with pytest.raises(InvalidArguments) as raised:
        validate(value)
    return str(raised.value)


def test_the_function_gets_an_absolute_path_without_links(folder):
    (folder / "link.csv").symlink_to("data/rain.csv")
    file = folder / "data" / "rain.csv"
    for sent in ["data/rain.csv", "./data/../data/rain.csv", "link.csv", str(file)]:
        path = validate(sent)
        assert (path, type(path)) == (file, SharedPath)
        assert isinstance(path, Path)
        assert path.read_text() == "mm\n1\n"
    assert pickle.loads(pickle.dumps(path)).read_bytes() == b"mm\n1\n"


def test_it_is_checked_in_lists_dataclasses_and_models(folder):
    file = folder / "data" / "rain.csv"
    assert validate(["data/rain.csv"], read_all, "paths") == [file]
    assert validate({"path": "data/rain.csv"}, read_job, "job") == Job(file)
    assert validate({"path": "data/rain.csv"}, read_report, "report") == Report(path=file)
    with pytest.raises(InvalidArguments, match=r"job\.path: got '\.\./secret.txt'"):
        validate({"path": "../secret.txt"}, read_job, "job")
    with pytest.raises(InvalidArguments, match=r"paths\[0\]: got 'no' .*there is no such file"):
        validate(["no"], read_all, "paths")


def test_clients_see_that_it_is_a_file_in_the_notebooks_folder():
    properties = read_function_schema(read).input_schema["properties"]
    assert properties == {"path": PLAIN}
    items = read_function_schema(read_all).input_schema["properties"]["paths"]
    assert items == {"type": "array", "items": PLAIN}


def test_a_file_outside_of_the_shared_folders_is_refused_whatever_leads_there(folder):
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "up").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    write_file(folder / ".env", "KEY=1")
    for sent in ["../secret.txt", "link.txt", "up/secret.txt", "/etc/passwd", ".env", "/dev/null"]:
        said = refusal(sent)
        assert said.startswith(f"path: got {sent!r} (string); the file {sent} is not shared: it is")
        assert said.endswith("`%mcp status` in the notebook says why.")
    assert "loop" in refusal("loop")


def test_what_is_no_file_is_refused_in_one_sentence(folder):
    os.mkfifo(folder / "pipe")
    for sent, said in {
        "data/rian.csv": "there is no such file, but there is 'data/rain.csv'.",
        "~/rain": "there is no such file: write it relative to the notebook's folder.",
        "data": "data is a folder, not a file.",
        "": "'' is a folder, not a file.",
        "a\0b": "a path has no NUL character.",
        "pipe": "pipe is not shared: it is a pipe, and only files are.",
        5: "allowed: path of a file as text.",
        None: "allowed: path of a file as text.",
        "\udc80": "there is no such file: write it relative to the notebook's folder.",
    }.items():
        text = refusal(sent)
        assert text.endswith(f"; {said}"), text
        assert "\n" not in text
    assert len(refusal("a" * 10_000)) < 300


def test_folders_that_the_author_allows_are_shared(folder, monkeypatch):
    secret = folder.parent / "secret.txt"
    monkeypatch.setenv("MCP_NOTEBOOK_ALLOWED_ROOTS", str(secret))
    assert validate("../secret.txt") == validate(str(secret)) == secret


def test_a_link_that_takes_the_files_place_after_the_check_is_not_followed(folder):
    path = validate("data/rain.csv")
    path.unlink()
    path.symlink_to(folder.parent / "secret.txt")
    with pytest.raises(OSError):  # noqa: PT011 - its text is the system's
        path.read_text()
    path.unlink()
    (folder / "data").rmdir()
    (folder / "data").symlink_to("..")
    write_file(folder.parent / "rain.csv", "secret")
    for read_it in (path.read_text, path.read_bytes, path.open, lambda: path.write_text("x")):
        with pytest.raises(OSError):  # noqa: PT011
            read_it()
    assert (folder.parent / "rain.csv").read_text() == "secret"


def test_a_pipe_that_takes_the_files_place_does_not_block(folder):
    path = validate("data/rain.csv")
    path.unlink()
    os.mkfifo(path)
    reader = threading.Thread(target=path.read_bytes, daemon=True)
    reader.start()
    reader.join(10)
    assert not reader.is_alive()


@pytest.mark.parametrize("tool", ["main", "thread", "fork", "process"])
def test_the_notebooks_folder_counts_wherever_the_function_runs(kernel, tmp_path, tool):
    if "ran" not in kernel.ok("print(*vars())").stdout.split():
        kernel.ok(TOOLS)
    place = kernel.ok("import os; print(os.getcwd())").stdout.strip()
    file = write_file(Path(place) / "rain.csv", "12345")
    try:
        kernel.ok(f"os.chdir({str(tmp_path)!r})")
        with Link(record_of(kernel)) as link:
            assert text_of(link.call(tool, path="rain.csv")) == "SharedPath rain.csv 5"
            refused = link.call(tool, path="../rain.csv")
        assert refused.is_error
        assert "the file ../rain.csv is not shared" in text_of(refused)
        number = int(kernel.ok("print(len(ran))").stdout)
        assert number == (tool in ("main", "thread"))
        if tool != "fork":  # its arguments are checked in the copy
            assert "is outside the notebook's folder" in kernel.ok("%mcp status").text
    finally:
        kernel.ok(f"os.chdir({place!r})\npool.shutdown()")
        file.unlink()
