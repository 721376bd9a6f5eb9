"""Calls of tools that use an object of the notebook."""

import pytest
from live import Link, record_of, text_of

SETUP = """
%load_ext mcp_notebook
import sqlite3, functools
from mcp_notebook import mcp_tool
class Frame:
    def __init__(self, *values): self.values = values
    def describe(self, word="total"): return f"{word} {sum(self.values)}"
df = Frame(1, 2)
db = sqlite3.connect(":memory:")
"""
TOOLS = '''
@mcp_tool
def summary(df, word):
    """Summarize."""
    return df.describe(word)

@mcp_tool(run="fork", read_only=True)
def copied(df):
    """Summarize."""
    return df.describe()

@mcp_tool
async def waits(df, /):
    """Summarize."""
    return df.describe()

@mcp_tool
def query(sql: str, db: sqlite3.Connection):
    """Query."""
    return db.execute(sql).fetchone()

@mcp_tool
def other(frame, n=1):
    """Summarize."""
    return frame.describe()

@mcp_tool
def of_year(año):
    """Summarize."""
    return año.describe()

frozen = functools.partial(summary, df)
%mcp_tool frozen
'''


@pytest.fixture
def notebook(shared_kernel):
    """A notebook with tools that use its `df` and its `db`."""
    shared_kernel.ok("%reset -f")
    shared_kernel.ok(SETUP)
    yield shared_kernel
    shared_kernel.ok("%unload_ext mcp_notebook")


def test_each_call_gets_what_the_variable_holds_then(notebook):
    (card,) = notebook.ok(TOOLS).displays
    assert "summary(word)\n    [uses your `df`; a type hint" in card["text/plain"]
    assert "frozen(word)\n    [holds its own `df`, not the notebook's]" in card["text/plain"]
    with Link(record_of(notebook)) as link:

        def ask(tool, **arguments):
            return text_of(link.call(tool, **arguments))

        tools = ("summary", "copied", "waits", "frozen")
        words = ({"word": "sum"}, {}, {}, {"word": "sum"})
        assert list(map(lambda t, w: ask(t, **w), tools, words)) == [
            *("sum 3", "total 3", "total 3", "sum 3")
        ]
        assert "3" in ask("query", sql="select 3")
        notebook.ok("df = Frame(10, 20)")
        assert list(map(lambda t, w: ask(t, **w), tools, words)) == [
            *("sum 30", "total 30", "total 30", "sum 3")
        ]
        refused = link.call("summary", word="sum", df=[1])
        assert refused.is_error
        assert "df" in text_of(refused)
        notebook.ok("del df")
        assert ask("summary", word="sum") == (
            "The tool uses the notebook's variable `df`, which was deleted. Ask the user to run "
            "the cell that defines `df` again."
        )
        assert ask("frozen", word="sum") == "sum 3"


def test_what_a_client_sends_in_place_of_an_object_is_an_error_that_says_what_to_ask_for(notebook):
    notebook.ok(TOOLS)
    with Link(record_of(notebook)) as link:
        answer = link.call("other", frame="sales")
        renamed = link.call("of_year", ano="2015")
    assert answer.is_error
    assert "'str' object has no attribute 'describe'" in text_of(answer)
    assert "`%%mcp_tool my_other(n=1)` with the line `other(my_frame, n)`" in text_of(answer)
    assert "`%%mcp_tool my_of_year()` with the line `of_year(my_año)`" in text_of(renamed)


def test_the_card_says_what_to_write_where_the_notebook_has_no_such_object(notebook):
    functions = (
        "%%mcp_tool\n@functools.cache\ndef grade(model, n: int):\n    return model.predict(n)"
    )
    for cell in (functions, "%%mcp_tool grade(model, n: int)\nmodel.predict(n)"):
        (card,) = notebook.ok(cell).displays
        assert "Clients cannot send `model`, an object (`model.predict`)." in card["text/plain"]
        assert "`%%mcp_tool my_grade(n)` with the line `grade(my_model, n)`" in card["text/plain"]
