"""The store of originals: what is kept, for how long, and what is said of what is not."""

import gc
import json
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_notebook.errors import UnknownResource
from mcp_notebook.kernel.link.resource_store import MAX_ORIGINALS, ResourceStore
from mcp_notebook.kernel.results.blocks.originals import FileFormat, Original
from mcp_notebook.kernel.results.tables.table_text import describe_table, find_frame
from mcp_notebook.wire.resource_uris import make_view_uri

pd = pytest.importorskip("pandas")


def original(name="table", cost=1, forms=1):
    kinds = [(".csv", "text/csv"), (".parquet", "application/vnd.apache.parquet")][:forms]
    made = tuple(FileFormat(extension, mime, lambda: name) for extension, mime in kinds)
    return Original(name, f"The whole {name}", made, cost)


def test_each_form_has_a_link_of_its_own_that_leads_to_it():
    store = ResourceStore("k", 100)
    csv, parquet = store.keep(original(forms=2))
    assert csv.uri.startswith("notebook://k/")
    assert (csv.name, parquet.name) == ("table.csv", "table.parquet")
    assert store.find_format(csv.uri).mime_type == "text/csv"
    assert store.find_format(parquet.uri).extension == ".parquet"
    assert store.links == [csv, parquet]


@pytest.mark.parametrize("name", ["ä b/c?d#e%", "../../etc", "\ud800", "\n", ""])
def test_any_name_makes_a_uri_that_is_found_again(name):
    store = ResourceStore("k", 100)
    (link,) = store.keep(original(name))
    assert link.uri.isascii()
    assert "\n" not in link.uri
    assert store.find_format(link.uri).content() == name


def test_what_is_too_large_has_no_link_and_drives_out_nothing():
    store = ResourceStore("k", 10)
    (kept,) = store.keep(original(cost=10))
    assert store.keep(original(cost=11)) == ()
    assert store.links == [kept]


def test_what_was_read_last_outlives_what_was_made_last():
    store = ResourceStore("k", 2)
    (first,) = store.keep(original("first"))
    (second,) = store.keep(original("second"))
    store.find_format(first.uri)
    (third,) = store.keep(original("third"))
    assert store.links == [first, third]
    with pytest.raises(UnknownResource, match=r"has expired, .*Call the tool again"):
        store.find_format(second.uri)


def test_originals_give_way_to_what_else_takes_its_part_of_the_memory():
    store = ResourceStore("k", 10)
    (first,), (second,) = store.keep(original("first", 4)), store.keep(original("second", 4))
    store.reserve(3)
    assert store.links == [second]
    assert store.keep(original(cost=8)) == ()
    (third,) = store.keep(original("third", 3))
    assert store.links == [second, third]
    store.reserve(10)
    assert store.links == []
    store.reserve(0)
    assert store.keep(original(cost=10))
    with pytest.raises(UnknownResource, match="has expired"):
        store.find_format(first.uri)


def test_what_never_was_is_told_from_what_has_expired():
    store = ResourceStore("k", 2)
    (link,) = store.keep(original())
    for uri in (f"{link.uri}x", "notebook://k/123/a.csv", "notebook://other/1/a"):
        with pytest.raises(UnknownResource, match="it does not exist"):
            store.find_format(uri)


def test_numbers_are_never_given_again_and_lists_go_on_after_them():
    store = ResourceStore("k", 3)
    store.keep(original("a", forms=2))
    page = store.list_links(limit=1)
    store.keep(original("b"))
    store.keep(original("c"))
    store.keep(original("d"))  # "a" expires
    after = store.list_links(page[-1][0])
    assert [link.name for _, link, _ in after] == ["b.csv", "c.csv", "d.csv"]
    assert [number for number, _, _ in after] == [3, 4, 5]


def test_a_store_of_no_bytes_keeps_only_what_costs_none():
    store = ResourceStore("k", 0)
    assert store.keep(original(cost=1)) == ()
    assert store.keep(original(cost=0))


@given(
    limit=st.integers(0, 50),
    steps=st.lists(st.integers(0, 60) | st.tuples(st.integers(0, 30)), max_size=40),
)
def test_the_store_is_the_newest_that_fit(limit, steps):
    """A step keeps an original of this cost, or reads the one at this place of the list."""
    store = ResourceStore("k", limit)
    model: list[tuple[str, int]] = []
    for step in steps:
        if isinstance(step, tuple):
            if model:
                entry = model.pop(step[0] % len(model))
                store.find_format(entry[0])
                model.append(entry)
            continue
        links = store.keep(original(cost=step))
        assert bool(links) == (step <= limit)
        if links:
            model.append((links[0].uri, step))
            while sum(cost for _, cost in model) > limit:
                model.pop(0)
        assert {link.uri for link in store.links} == {uri for uri, _ in model}
    numbers = [number for number, _, _ in store.list_links()]
    assert numbers == sorted(set(numbers))


def test_a_name_of_any_length_makes_a_uri_that_a_bridge_looks_at():
    store = ResourceStore("k", 100)
    form = FileFormat("." + "é" * 5_000, "text/plain", lambda: "")
    (link,) = store.keep(Original("\U0001f600" * 5_000, "", (form,), 1))
    assert len(link.uri) < 2_000
    assert store.find_format(link.uri) is form


def test_what_expires_may_use_the_store_at_its_end():
    store = ResourceStore("k", 1)
    seen = []

    class Last:
        def __call__(self):
            return ""

        def __del__(self):
            seen.append(len(store.links))

    for end in (lambda: store.keep(original("b")), store.clear):
        store.keep(Original("a", "", (FileFormat(".txt", "text/plain", Last()),), 1))
        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert seen == [1, 0]


def test_only_the_view_that_is_asked_keeps_what_it_has_read_and_an_expired_one_is_let_go():
    table = describe_table(find_frame(pd.DataFrame({"x": range(100_000)})))
    store = ResourceStore("k", 2 * table.cost)
    first, second = (make_view_uri(store.keep(table)[0].uri) for _ in range(2))
    query = json.dumps({"kind": "page", "rows": {"sort": 0}})
    store.find_view(first).answer(query)
    assert store.find_view(first)._order
    store.find_view(second).answer(query)
    assert not store.find_view(first)._order
    gone = weakref.ref(store.find_view(first))
    store.clear()
    gc.collect()
    assert gone() is None


def test_many_small_ones_are_bounded_too():
    store = ResourceStore("k", 10**9)
    for _ in range(MAX_ORIGINALS + 5):
        store.keep(original(cost=0))
    assert len(store.links) == MAX_ORIGINALS
