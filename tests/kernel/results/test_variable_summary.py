"""What a client reads of a variable, whatever the value is and does."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from mcp_notebook.kernel.results.variable_summary import (
    MAX_CELLS,
    MAX_COLUMNS,
    find_facts,
    summarize,
)


class Raises:
    def __repr__(self):
        raise SystemExit(3)


def _never_return(*_arguments):
    while True:
        pass


class Hangs(dict):
    __len__ = __repr__ = items = keys = __iter__ = _never_return
    __class__ = property(_never_return)


class OwnFrame(pd.DataFrame):
    shape = property(_never_return)


class Odd:
    __module__ = Raises()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.5, "float"),
        ("abc", "str, 3 characters"),
        (b"a", "bytes, 1 byte"),
        ([1], "list, 1 item"),
        ({"a": 1, "b": 2}, "dict, 2 items"),
        (np.zeros((3, 4)), "numpy.ndarray, 3 x 4, 96 bytes"),
        (pd.Series([1, 2], index=range(2)), "pandas.Series, 2 rows, "),
        (pd.DataFrame({"a": range(1000)}), "pandas.DataFrame, 1,000 rows x 1 column, "),
        (pd.Index([3]), "pandas.Index, 1 row, 8 bytes"),
    ],
)
def test_the_facts_are_type_shape_and_size(value, text):
    assert find_facts(value).text.startswith(text)
    assert summarize(value)["type"] == find_facts(value).type


def test_facts_run_no_code_of_the_value():
    assert find_facts(Hangs(a=1)).shape == (1,)
    assert find_facts(OwnFrame({"a": [1, 2]})).shape == (2, 1)
    assert find_facts(Raises()).text.endswith("test_variable_summary.Raises")
    assert find_facts(Odd()).text == "Odd"


def test_a_value_that_fails_or_hangs_says_so():
    assert "SystemExit: 3" in summarize(Raises())["value"]
    hung = summarize(Hangs(a=1), seconds=0.2)
    assert hung["shape"] == (1,)
    assert "an object of type Hangs" in hung["value"]
    odd = summarize(pd.DataFrame({"a": [Raises(), Raises()]}))
    assert "SystemExit: 3" in odd["head"][0][0]


def test_of_a_large_table_a_sample_is_summarized_and_all_parts_are_bounded():
    rows = 1_200
    columns = {"n": range(rows), "text": ["x" * 5_000] * rows}
    summary = summarize(pd.DataFrame(columns | dict.fromkeys(range(998), 0)))
    assert summary["summarized_rows"] == 1_000
    numbers, texts, *_ = summary["columns"]
    assert numbers["min"] < 10 < rows - 11 < numbers["max"]
    assert texts["top"] == [["x" * 200, 1_000]]
    assert len(json.dumps(summary)) < 10_000
    wide = summarize(pd.DataFrame(np.zeros((2, 5_000))))
    assert len(wide["columns"]) == len(wide["head"][0]) == MAX_COLUMNS
    assert wide["columns_left_out"] == 4_950
    array = summarize(np.arange(MAX_CELLS + 1.0))
    assert (array["summarized_elements"], array["min"], array["missing"]) == (MAX_CELLS, 0, 0)


def test_empty_and_nested_values_have_a_summary():
    assert summarize(pd.DataFrame())["columns"] == []
    assert summarize(np.array([]))["value"] == []
    assert summarize({"a": [1, {"b": None}]})["value"] == {"a": [1, {"b": None}]}
    assert summarize(list(range(100_000)))["is_shortened"]
    assert summarize(np.array([float("nan")]))["missing"] == 1


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xff" * 2**26, "<67,108,864 bytes: ff ff ff"),
        (bytearray(2**26), "<67,108,864 bytes: 00 00 00"),
        ("é".encode() * 2**25, "éééé"),
        ([b"a" * 2**26], "aaaa"),
        (pd.Series([b"a" * 2**26, "a" * 2**26]), "b'aaaa"),
    ],
    ids=["bytes", "bytearray", "text as bytes", "list", "Series"],  # older pytest takes the values
)
def test_only_the_beginning_of_long_bytes_is_read(data, shown):
    tracemalloc.start()
    try:
        summary = summarize(data)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    text = json.dumps(summary, ensure_ascii=False)
    assert shown in text
    assert len(text) < 5_000


class Account:
    def __repr__(self):
        return "Account(user='ann', password='hunter2')"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "hunter2") for name in ("password", "API_KEY", "dbPassword", "accessToken")),
        ("credentials", {"user": ["hunter2"]}),
        ("config", {"mail": [{"smtp_password": "hunter2"}]}),
        ("token", b"hunter2"),
        ("account", Account()),
        ("line", '{"secret": "hunter2"}'),
        ("url", "postgres://ann:hunter2@db/sales"),
        ("x", "sk-hunter2hunter2hunter2"),
        ("x", "-----BEGIN RSA PRIVATE KEY-----\nhunter2"),
        ("users", pd.DataFrame({"user": ["ann"], "password": ["hunter2"]})),
    ],
)
def test_what_is_or_looks_like_a_secret_is_masked(name, value):
    text = json.dumps(summarize(value, name))
    assert "hunter2" not in text
    assert "**********" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [("tokens", ["the"]), ("secretary", "Ann"), ("key", "a"), ("url", "http://a:80/b@c"), ("n", 3)],
)
def test_other_values_are_shown(name, value):
    assert summarize(value, name)["value"] == value
