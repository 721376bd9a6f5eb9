"""What follows ``%mcp record`` and ``%mcp config``."""

import pytest
from IPython.core.error import UsageError

from mcp_notebook.kernel.notebook.verb_line import read_name


def read(line):
    return read_name(line, "record", "file", ("--append", "--stop"))


def test_a_name_and_options_may_stand_in_any_order():
    assert read("") == (None, set())
    assert read("'my calls' --append") == ("my calls", {"--append"})
    assert read("--append calls --stop") == ("calls", {"--append", "--stop"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"calls', r"No closing quotation: close the quote in `%mcp record \"calls`\."),
        ("--apend", r"no option `--apend`\. Did you mean `--append`\?"),
        ("-x", r"no option `-x`\. It has --append, --stop\."),
        ("a b", r"takes one file, not 2: a, b\. Put a name with spaces in quotes\."),
    ],
)
def test_what_cannot_be_understood_is_named(line, message):
    with pytest.raises(UsageError, match=message):
        read(line)
