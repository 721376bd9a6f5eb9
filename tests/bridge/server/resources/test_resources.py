"""Requests for resources without kernels, and pages; with kernels: `e2e/test_resources.py`."""

import csv
import io
import re

import anyio
import pytest
from bridges import TOKEN
from endpoints import OWNERS, modern, served
from hypothesis import given
from hypothesis import strategies as st
from judge import in_process
from kernel_stand_ins import keeping, peer
from linked_servers import make_server
from live import TIMEOUT
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from mcp_notebook.bridge.access.caller import EVERYTHING, OWNER, Caller, Permissions
from mcp_notebook.bridge.access.token_check import NamedTokens
from mcp_notebook.bridge.access.token_store import TokenStore
from mcp_notebook.bridge.kernels.catalog import Catalog
from mcp_notebook.bridge.kernels.links import Links
from mcp_notebook.bridge.server.own_tools.meta_tools import MAX_LINES, RequestedPage
from mcp_notebook.bridge.server.resources.resources import (
    LEGACY_NOT_FOUND,
    MAX_READS,
    PAGE_CHARS,
    ResourceOwners,
    make_page,
)
from mcp_notebook.content import Image, Resource, ResourceLink, Result, Text
from mcp_notebook.wire import messages, resource_uris

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
async def client(request):
    catalog = Catalog()
    async with (
        Links(catalog) as links,
        Client(in_process(make_server(catalog, links)), mode=request.param) as client,
    ):
        with anyio.fail_after(TIMEOUT):
            yield client


async def test_the_pages_of_several_kernels_have_each_resource_once(home):
    def infos(kernel, numbers):
        return [
            messages.ResourceInfo(number=number, uri=f"notebook://{kernel}/{number}/a", name="a")
            for number in numbers
        ]

    catalog = Catalog()
    async with (
        peer(home, keeping("f")) as first,
        peer(home, keeping("g")) as second,
        Links(catalog) as links,
        Client(in_process(make_server(catalog, links, page_size=3))) as client,
    ):
        first.resources = infos("1", range(3, 8))
        second.resources = infos("2", range(1, 5))
        await links.connect(first.record)
        await links.connect(second.record)
        uris, cursor = [], None
        with anyio.fail_after(TIMEOUT):
            while cursor is not None or not uris:
                page = await client.list_resources(cursor=cursor)
                uris += [str(resource.uri) for resource in page.resources]
                cursor = page.next_cursor
        assert uris == [info.uri for info in (*first.resources, *second.resources)]


@pytest.mark.parametrize("cursor", ["", "1.2", "1.2.abc", "\N{SNOWMAN}", "1.2." + "0" * 32])
async def test_a_cursor_that_a_client_made_up_is_unknown(client, cursor):
    for ask in (client.list_resources, client.list_resource_templates):
        with pytest.raises(MCPError, match="Unknown cursor") as caught:
            await ask(cursor=cursor)
        assert caught.value.error.code == INVALID_PARAMS


async def test_an_unknown_resource_has_the_code_of_its_era(client):
    with pytest.raises(MCPError, match="cannot be read") as caught:
        await client.read_resource("notebook://k/1/a.csv")
    assert caught.value.error.code in (INVALID_PARAMS, LEGACY_NOT_FOUND)
    assert caught.value.error.data == {"uri": "notebook://k/1/a.csv"}


LINES = st.one_of(st.text("ab, ", max_size=20), st.integers(0, 70_000).map("word, ".__mul__))


@given(
    st.lists(LINES, min_size=1, max_size=30), st.integers(1, 5) | st.just(MAX_LINES), st.booleans()
)
def test_the_pages_one_after_another_are_the_whole_text(lines, count, ends):
    text = "\n".join(lines) + "\n" * ends
    resource = Resource("notebook://k/1/text.txt", text)
    total = text.count("\n") + (not text.endswith("\n"))
    line, character, parts = 1, 1, []
    while True:
        result = make_page(resource, RequestedPage(resource.uri, line, count, character))
        head, _, body = result.content[0].text.partition("]\n")
        assert len(body) <= PAGE_CHARS
        first, last, of = (
            int(number.replace(",", ""))
            for number in re.search(r"lines ([\d,]+) to ([\d,]+) of ([\d,]+)", head).groups()
        )
        assert (first, of) == (line, total)
        next_page = re.search(r"first_line=(\d+)(?:, first_character=(\d+))?", head)
        if next_page is None:
            assert last == total
            parts.append(body)
            break
        is_within = next_page[2] is not None
        assert int(next_page[1]) == last + (not is_within)
        parts.append(body if is_within else f"{body}\n")
        line, character = int(next_page[1]), int(next_page[2] or 1)
    assert "".join(parts) == text.removesuffix("\n")


def test_a_page_of_a_table_has_the_names_of_its_columns():
    rows = "".join(f"{number},x\n" for number in range(100))
    resource = Resource("notebook://k/1/table.csv", f"n,name\n{rows}", "text/csv")
    (text,) = make_page(resource, RequestedPage(resource.uri, 50, 2, 1)).content
    assert text.text == (
        "[notebook://k/1/table.csv: lines 50 to 51 of 101. Continue with first_line=52. "
        "Line 1: n,name]\n48,x\n49,x"
    )


CELLS = st.one_of(st.text('ab,"\n', max_size=8), st.integers(0, 6_000).map('x,\n"'.__mul__))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=30), st.integers(1, 40))
def test_a_page_of_a_table_has_whole_rows_whatever_is_in_a_cell(rows, count):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("n", "t"), *rows])
    resource = Resource("notebook://k/1/table.csv", text.getvalue(), "text/csv")
    for number, row in enumerate(rows, 2):
        page = RequestedPage(resource.uri, number, count, 1)
        head, _, body = make_page(resource, page).content[0].text.partition("]\n")
        assert f"of {len(rows) + 1}." in head
        read = list(csv.reader(io.StringIO(body, newline="")))
        # A cell that does not fit on a page is the only one that is cut.
        is_long = sum(map(len, row)) + 7 + sum(cell.count('"') for cell in row) > PAGE_CHARS
        assert is_long or read[0] == [*row]
        is_cut = "first_character" in head
        begun = read[:-1] if is_cut else read
        assert begun == [[*row] for row in rows[number - 2 :][: len(begun)]]


def test_a_picture_is_a_page_and_other_data_is_a_sentence():
    picture = Resource("notebook://k/1/picture.png", b"\x89PNG", "image/png")
    page = RequestedPage(picture.uri, 1, 1, 1)
    assert make_page(picture, page).content == [Image(b"\x89PNG", "image/png")]
    failed = make_page(Resource("notebook://k/1/a.bin", b"\x00", "application/x"), page)
    assert failed.is_error
    assert "is not text" in failed.content[0].text


async def test_guests_leave_reads_to_each_other_and_to_the_user(home):
    """The kernel answers no read."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = 2 * MAX_READS
    store = TokenStore(home / "tokens.json")
    tokens = [*(store.add(f"guest-{number}", EVERYTHING) for number in range(2)), TOKEN]
    async with (
        served(home, authenticators=(*OWNERS, NamedTokens(store))) as here,
        anyio.create_task_group() as tasks,
    ):
        prefix = resource_uris.make_prefix(here.kernel.record.id)
        read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {}}
        said = []

        async def ask(token):
            message, headers = modern(read | {"params": {"uri": f"{prefix}{len(said)}"}})
            answer = await here.ask(message, **headers, Authorization=f"Bearer {token}")
            said.append((token, answer.error["message"]))

        def count_reads():
            return sum(isinstance(item, messages.ReadResource) for item in here.kernel.heard)

        for token, most in zip(tokens, (32, 48, 64), strict=True):
            while not said or said[-1][0] != token:  # until one more is refused
                tasks.start_soon(ask, token)
                before = count_reads() + len(said)
                while count_reads() + len(said) == before:
                    await anyio.lowlevel.checkpoint()
            assert count_reads() == most
            assert "Too many reads of resources" in said[-1][1]
        tasks.cancel_scope.cancel()


# -- who sees which

ANN, BOB = (
    Caller(name=name, permissions=Permissions(tools=("top",)), identity=f"token:{name}")
    for name in ("ann", "bob")
)


def linking(*uris):
    return Result([Text("a part"), *(ResourceLink(uri, "the whole") for uri in uris)])


def test_a_caller_sees_what_its_own_results_link_to_and_the_owner_sees_all():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("notebook://k/1/a"))
    owners.note_result(OWNER, linking("notebook://k/2/a"))
    for uri, who in (("notebook://k/1/a", {"ann", "owner"}), ("notebook://k/2/a", {"owner"})):
        assert {each.name for each in (ANN, BOB, OWNER) if owners.may_see(each, uri)} == who


def test_a_token_of_the_same_name_sees_nothing_of_the_one_before():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("notebook://k/1/a"))
    new = Caller(name="ann", permissions=ANN.permissions, identity="token:new")
    assert not owners.may_see(new, "notebook://k/1/a")


def test_only_the_resources_of_kernels_are_remembered():
    owners = ResourceOwners()
    owners.note_result(ANN, linking("https://example.com/a"))
    assert not owners.may_see(ANN, "https://example.com/a")


def test_what_is_remembered_is_bounded():
    owners = ResourceOwners(max_owned=3, max_owners=2)
    uris = [f"notebook://k/{number}/a" for number in range(5)]
    owners.note_result(ANN, linking(*uris))
    assert [owners.may_see(ANN, uri) for uri in uris] == [False, False, True, True, True]
    for name in ("b", "c"):
        caller = Caller(name=name, permissions=ANN.permissions)
        owners.note_result(caller, linking("notebook://k/1/a"))
    assert not owners.may_see(ANN, uris[4])
