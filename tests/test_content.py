"""What blocks say about themselves: checked where their author makes them."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from mcp_notebook import Audio, Image, Resource, ResourceLink, Text


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("user", ("user",)),
        (["user"], ("user",)),
        (("assistant", "user"), ("assistant", "user")),
        (["user", "user"], ("user",)),
        ((), ()),
        (None, ()),
    ],
)
def test_an_audience_is_one_or_a_list(given, kept):
    assert Text("a", audience=given).audience == kept


@pytest.mark.parametrize("given", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_a_priority_is_a_number_from_0_to_1(given):
    block = Text("a", priority=given)
    assert block.priority == given
    assert type(block.priority) is float


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (datetime(2025, 1, 12, 15, tzinfo=UTC), "2025-01-12T15:00:00+00:00"),
        (datetime(2025, 1, 12, tzinfo=timezone(timedelta(hours=2))), "2025-01-12T00:00:00+02:00"),
        (pd.Timestamp("2025-01-12", tz="UTC"), "2025-01-12T00:00:00+00:00"),
        ("2025-01-12T15:00:58Z", "2025-01-12T15:00:58Z"),
        ("2025-01-12", "2025-01-12"),
    ],
)
def test_a_time_is_a_datetime_or_iso_text(given, kept):
    assert Image(b"", last_modified=given).last_modified == kept


def test_a_time_without_a_zone_is_local_time():
    given = datetime(2025, 1, 12, 15)  # noqa: DTZ001 - what is tested
    kept = datetime.fromisoformat(Text("a", last_modified=given).last_modified)
    assert kept.utcoffset() is not None
    assert kept == given.astimezone()


class Broken:
    def __repr__(self):
        raise RuntimeError("no repr today")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"audience": "usr"}, "not 'usr'; did you mean 'user'?"),
        ({"audience": ["user", "dog"]}, "`audience` is 'user', 'assistant' or a list of them"),
        ({"audience": 5}, "not 5."),
        ({"audience": b"user"}, "not 117."),
        ({"audience": [Broken()]}, "not a Broken."),
        ({"priority": 2}, "`priority` is a number from 0 (optional) to 1 (required), not 2."),
        ({"priority": -0.1}, "not -0.1."),
        ({"priority": float("nan")}, "not nan."),
        ({"priority": True}, "not True."),
        ({"priority": "high"}, "not 'high'."),
        ({"last_modified": "yesterday"}, "an ISO 8601 text such as '2025-01-12T15:00:58Z', not"),
        ({"last_modified": 1736694058.0}, "datetime.fromtimestamp"),
        ({"last_modified": pd.NaT}, "not NaT"),
        ({"last_modified": ""}, "not ''"),
    ],
)
def test_what_clients_would_not_understand_is_refused_at_once(given, said):
    for make in (
        lambda **said: Text("a", **said),
        lambda **said: Image(b"", **said),
        lambda **said: Audio(b"", **said),
        lambda **said: Resource("a:b", "", **said),
        lambda **said: ResourceLink("a:b", "b", **said),
    ):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - each has its sentence
            make(**given)
        assert said in str(caught.value)


def test_a_block_stays_what_it_is_when_it_is_copied_or_comes_from_a_worker():
    block = Text("a", audience="user", priority=1, last_modified="2025-01-12")
    assert pickle.loads(pickle.dumps(block)) == block
    assert copy.deepcopy(block) == block
    assert Text("a", audience=("user",)) == Text("a", audience=["user"])
    assert len({Text("a", audience=["user"]), Text("a", audience="user")}) == 1
