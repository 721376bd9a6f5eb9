"""Exceptions as text: the user's own lines, and nobody else's."""

import json

import pytest
from IPython.core.compilerop import CachingCompiler

from mcp_notebook.content import Result, Text
from mcp_notebook.errors import InvalidArguments, ToolError
from mcp_notebook.kernel.results.tracebacks import (
    ErrorStyle,
    ErrorText,
    describe_briefly,
    describe_exception,
    find_details,
    reveal_details,
)

CELL = """\
def average(numbers):
    return sum(numbers) / len(numbers)

def outer():
    return average([])
"""


@pytest.fixture
def compiler():
    return CachingCompiler()


def cell(compiler, source, number=3):
    """Return the namespace of a cell that ran as IPython runs it."""
    namespace = {"__name__": "__main__"}
    exec(compile(source, compiler.cache(source, number), "exec"), namespace)
    return namespace


def raised(function, *args):
    try:
        function(*args)
    except BaseException as error:  # noqa: BLE001 - any failure is what is tested
        return error
    raise AssertionError("nothing was raised")


def test_the_lines_of_the_cells_are_named_as_in_the_notebook(compiler):
    error = raised(cell(compiler, CELL)["outer"])
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame
    assert describe_exception(error, compiler.format_code_name) == (
        "ZeroDivisionError: division by zero\n"
        "Traceback (most recent call last):\n"
        "  Cell In[3], line 5, in outer\n"
        "    return average([])\n"
        "  Cell In[3], line 2, in average\n"
        "    return sum(numbers) / len(numbers)"
    )


@pytest.mark.smoke
def test_of_a_library_only_the_frame_that_raised_is_named(compiler):
    namespace = cell(compiler, "import json\ndef load():\n    return json.loads('{')\n")
    text = describe_exception(raised(namespace["load"]), compiler.format_code_name)
    assert (
        "Cell In[3], line 3, in load\n    return json.loads('{')\n    ...\n  json/decoder.py"
        in text
    )
    assert text.count("json/") == 1
    assert text.startswith(f"{json.JSONDecodeError.__module__}.JSONDecodeError: ")


def test_what_is_installed_outside_of_site_packages_is_a_library_too(
    compiler, tmp_path, monkeypatch
):
    (tmp_path / "acme-1.0.dist-info").mkdir()
    (tmp_path / "acme").mkdir()
    path = tmp_path / "acme" / "load.py"
    code = compile("def load():\n    return read()\ndef read():\n    1 / 0\n", path, "exec")
    library = {"__name__": "acme.load"}
    exec(code, library)
    monkeypatch.syspath_prepend(tmp_path)
    namespace = cell(compiler, "def f():\n    return load()\n")
    namespace["load"] = library["load"]
    text = describe_exception(raised(namespace["f"]), compiler.format_code_name)
    assert text.endswith("return load()\n    ...\n  acme/load.py, line 4, in read")


def test_what_runs_the_users_code_is_left_out(compiler):
    namespace = cell(compiler, CELL)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only here

    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(namespace["outer"]).exception()
    assert "concurrent" not in describe_exception(error, compiler.format_code_name)


@pytest.mark.parametrize("error", [ToolError("no such city"), InvalidArguments("n: too large")])
def test_an_error_meant_for_the_model_is_exactly_its_text(error):
    def tool():
        raise error

    assert describe_exception(raised(tool)) == str(error)


def test_what_caused_it_is_told(compiler):
    source = (
        "def f():\n    try:\n        {}['x']\n    except KeyError as e:\n"
        "        raise ValueError('no x') from e\n"
    )
    text = describe_exception(raised(cell(compiler, source)["f"]), compiler.format_code_name)
    assert text.startswith("ValueError: no x\n")
    assert "It was caused by:\n\nKeyError: 'x'\n" in text
    assert "Cell In[3], line 3, in f\n    {}['x']" in text


def test_the_members_of_a_group_are_told_up_to_a_bound():
    group = ExceptionGroup("several", [ValueError(str(n)) for n in range(8)])
    text = describe_exception(group)
    assert text.startswith("ExceptionGroup: several (8 sub-exceptions)")
    assert "- ValueError: 4\n- ... and 3 more" in text


def test_a_syntax_error_shows_its_line(compiler):
    source = "def f():\n    compile('x = = 1', 'made.py', 'exec')\n"
    text = describe_exception(raised(cell(compiler, source)["f"]), compiler.format_code_name)
    assert 'File "made.py", line 1' in text
    assert "x = = 1" in text
    assert "SyntaxError: invalid syntax" in text


def test_an_endless_recursion_is_short(compiler):
    namespace = cell(compiler, "def f(n):\n    return f(n + 1)\n")
    text = describe_exception(raised(namespace["f"], 0), compiler.format_code_name)
    assert text.startswith("RecursionError: maximum recursion depth exceeded")
    assert "more times]" in text
    assert len(text) < 1_000


def test_an_exception_whose_message_fails_is_named():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("never")

        __repr__ = __str__

    assert "Mute" in describe_exception(Mute())


# -- what a client gets ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("cannot read /home/ann/x.csv: bad", "cannot read …/x.csv: bad"),
        ("'/home/ann/my data/x.csv' is bad", "'…/x.csv' is bad"),
        ("path=/tmp/a/b.csv, ~/c/d", "path=…/b.csv, …/d"),
        (r"C:\Users\ann\x.csv and \\server\share\y.csv", "…/x.csv and …/y.csv"),
        ("file:///home/ann/x.csv", "…/x.csv"),
        ("https://example.com/a/b.html, a/b, 1 / 0", "https://example.com/a/b.html, a/b, 1 / 0"),
        ('work failed\n  File "/home/ann/x.py", line 3, in f\n    token = 5', "work failed"),
        ("failed\nTraceback (most recent call last):\n  secret()", "failed"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_a_short_error_has_neither_folders_nor_source_lines(message, said):
    assert describe_briefly(ValueError(message)) == f"ValueError: {said}"


def test_a_short_error_names_a_missing_file_without_its_folder(tmp_path):
    error = raised(open, tmp_path / 'it\'s "new".csv')
    assert str(tmp_path) not in (said := describe_briefly(error))
    assert said.startswith("FileNotFoundError: [Errno 2] No such file or directory: ")
    assert "new" in said


def test_a_short_syntax_error_has_no_line():
    error = raised(compile, "token = (", "/home/ann/x.py", "exec")
    assert describe_briefly(error) == "SyntaxError: '(' was never closed"


def test_a_short_error_is_the_type_where_the_message_cannot_be_read():
    class BrokenError(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe_briefly(BrokenError()) == "BrokenError"
    assert describe_briefly(ValueError()) == "ValueError"


def test_a_style_says_what_the_client_gets_and_the_author_gets_everything(compiler):
    outer = cell(compiler, CELL)["outer"]
    name = compiler.format_code_name
    whole = ErrorStyle().explain(raised(outer), name)
    short = ErrorStyle("short").explain(raised(outer), name)
    masked = ErrorStyle("masked", "It failed.").explain(raised(outer), name)
    assert type(whole) is Text
    assert "sum(numbers)" in whole.text
    assert short.text == "ZeroDivisionError: division by zero"
    assert masked.text == "It failed."
    assert short.details == masked.details == whole.text
    result = Result([Text("printed"), short], is_error=True)
    assert find_details(result) == whole.text
    assert reveal_details(result) == Result([Text("printed"), whole], is_error=True)


@pytest.mark.parametrize("detail", ["full", "short", "masked"])
def test_a_sentence_of_the_authors_is_always_whole(detail):
    said = ErrorStyle(detail, "It failed.").explain(ToolError("No rain in /data/2015."))
    assert said == Text("No rain in /data/2015.")
    assert not isinstance(said, ErrorText)
