import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mcp_notebook.discovery import departures
from mcp_notebook.discovery.departures import KEEP, Departure, list_departures, write_departure
from mcp_notebook.settings.private_files import write_private


def make_departure(name="sales", **changed):
    values = {"notebook": f"/{name}.ipynb", "name": name, "reason": None}
    return Departure(**(values | {"at": time.time()} | changed))


@pytest.mark.smoke
def test_the_latest_departure_of_each_notebook_is_kept(tmp_path):
    now = time.time()
    for at in (now - 20, now - 10):
        write_departure(tmp_path, make_departure(at=at))
    other = make_departure("costs", at=now, reason="The kernel was restarted.")
    write_departure(tmp_path, other)
    assert list_departures(tmp_path) == (other, make_departure(at=now - 10))


def test_a_departure_is_forgotten_after_some_minutes(tmp_path):
    write_departure(tmp_path, make_departure(at=time.time() - KEEP))
    assert len(list(tmp_path.iterdir())) == 1
    write_departure(tmp_path, make_departure("costs"))
    assert [departure.name for departure in list_departures(tmp_path)] == ["costs"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_departure_that_cannot_be_written_harms_nobody(tmp_path):
    (tmp_path / "kernels").touch()
    write_departure(tmp_path / "kernels", make_departure())
    assert list_departures(tmp_path / "kernels") == ()
    assert list_departures(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: write_private(path, "{}")])
def test_an_invalid_departure_is_ignored(tmp_path, make):
    make(tmp_path / f"bad{departures._SUFFIX}")
    write_departure(tmp_path, make_departure())
    assert [departure.name for departure in list_departures(tmp_path)] == ["sales"]


FIELDS = structs.asdict(make_departure())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NEARLY_DEPARTURES = st.dictionaries(st.sampled_from(sorted(FIELDS)), JSON).map(
    lambda changed: FIELDS | changed
)


@given(
    content=st.binary() | (JSON | NEARLY_DEPARTURES).map(lambda value: json.dumps(value).encode())
)
def test_no_file_keeps_the_others_from_being_read_or_breaks_a_line(content):
    with TemporaryDirectory() as name:
        write_departure(Path(name), make_departure("costs"))
        (Path(name) / f"other{departures._SUFFIX}").write_bytes(content)
        found = list_departures(Path(name))
        assert "costs" in [departure.name for departure in found]
        assert all(f"{departure.name}{departure.reason}".isprintable() for departure in found)
