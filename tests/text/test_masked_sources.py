"""What is masked in the source of a cell before a client reads it."""

import pytest

from mcp_notebook.text.redaction import MASK, mask_source


@pytest.mark.parametrize(
    ("source", "masked"),
    [
        ("api_key = 'sk-1'", f'api_key = "{MASK}"'),
        ("os.environ['DB_PASSWORD'] = 'x'", f"os.environ['DB_PASSWORD'] = \"{MASK}\""),
        ("os.environ.setdefault('TOKEN', 'x')", f"os.environ.setdefault('TOKEN', \"{MASK}\")"),
        ("Client(token=f'x{1}', n=3)", f'Client(token=f"{MASK}", n=3)'),
        ('password: str = "p\\"q"', f'password: str = "{MASK}"'),
        ("%env NAME=x y", f"%env NAME={MASK}"),
        ("%set_env NAME x", f"%set_env NAME {MASK}"),
        ("connect('postgres://u:pw@h')", f"connect('postgres://{MASK}@h')"),
        ("x = 'ghp_0123456789abcdef'", f"x = '{MASK}'"),
        ('secret = """a\nb"""', f'secret = "{MASK}"'),
    ],
)
def test_what_looks_like_a_secret_is_masked(source, masked):
    assert mask_source(source) == masked


@pytest.mark.parametrize("source", ["token = get_token()", "x = 'y'", "tokens['a'] += 1", ""])
def test_other_code_stays_as_it_is(source):
    assert mask_source(source) == source


@pytest.mark.parametrize("text", ["A", "token", "\n"])
def test_a_long_cell_is_masked_at_once(text):
    """Each of these takes hours if the time grows with the square of the length."""
    source = f"x = '{text * 300_000}'"
    assert mask_source(source) == source
