"""Which endpoint an address means, for all that people paste."""

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_notebook.bridge.connect.addresses import (
    Address,
    BinderRepository,
    HubServer,
    check_encryption,
    find_hub,
    find_server,
    read_address,
)
from mcp_notebook.errors import RemoteError

HUB = "https://hub.example.org"
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)
NAMES = WORDS.filter(lambda word: word not in {".", ".."})
PATHS = st.lists(NAMES, max_size=3)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://127.0.0.1:8791/mcp", "http://127.0.0.1:8791/mcp"),
        (" <http://127.0.0.1:8791/mcp/> ", "http://127.0.0.1:8791/mcp"),
        ("localhost:8888", "http://localhost:8888/mcp-notebook"),
        ("[::1]:8888/lab", "http://[::1]:8888/mcp-notebook"),
        ("hub.example.org/user/ada/lab", f"{HUB}/user/ada/mcp-notebook"),
        ("http://localhost:8888/lab", "http://localhost:8888/mcp-notebook"),
        ("http://localhost:8888/lab/tree/a.ipynb", "http://localhost:8888/mcp-notebook/a.ipynb"),
        ("http://localhost:8888/lab/tree/d", "http://localhost:8888/mcp-notebook"),
        (
            "http://localhost:8888/lab/tree/RTC:d/a.ipynb",
            "http://localhost:8888/mcp-notebook/d/a.ipynb",
        ),
        (
            "http://localhost:8888/lab/workspaces/x/tree/a.ipynb",
            "http://localhost:8888/mcp-notebook/a.ipynb",
        ),
        (
            "http://localhost:8888/doc/tree/a%20b.ipynb",
            "http://localhost:8888/mcp-notebook/a%20b.ipynb",
        ),
        (
            "http://localhost:8888/notebooks/d/a.ipynb?x=1#y",
            "http://localhost:8888/mcp-notebook/d/a.ipynb",
        ),
        (
            "http://localhost:8888/nbclassic/notebooks/a.ipynb",
            "http://localhost:8888/mcp-notebook/a.ipynb",
        ),
        ("http://localhost:8888/tree", "http://localhost:8888/mcp-notebook"),
        (
            "http://localhost:8888/base/lab/tree/a.ipynb",
            "http://localhost:8888/base/mcp-notebook/a.ipynb",
        ),
        (f"{HUB}/user/x/lab/tree/a.ipynb", f"{HUB}/user/x/mcp-notebook/a.ipynb"),
        (f"{HUB}/user/x/", f"{HUB}/user/x/mcp-notebook"),
        (
            f"{HUB}/user/lab/lab/tree/lab/tree/a.ipynb",
            f"{HUB}/user/lab/mcp-notebook/lab/tree/a.ipynb",
        ),
        (f"{HUB}/user/x/second/lab", f"{HUB}/user/x/second/mcp-notebook"),
        (f"{HUB}/jupyter/user/x/lab", f"{HUB}/jupyter/user/x/mcp-notebook"),
        (f"{HUB}/hub/user/x/lab", f"{HUB}/user/x/mcp-notebook"),
        (f"{HUB}/user/x/mcp-notebook/a.ipynb", f"{HUB}/user/x/mcp-notebook/a.ipynb"),
    ],
)
def test_an_address_from_the_browser_leads_to_its_endpoint(text, endpoint):
    assert read_address(text).endpoints[0] == endpoint


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        (
            "http://localhost:8888/base/mcp/a.ipynb",
            ["base/mcp/a.ipynb", "base/mcp-notebook/a.ipynb"],
        ),
        ("http://localhost:8888", ["mcp-notebook", "mcp"]),
        ("http://localhost:8888/x", ["x/mcp-notebook", "x/mcp", "x"]),
    ],
)
def test_the_other_addresses_to_ask_if_another_program_has_the_first(text, endpoints):
    urls = tuple(f"http://localhost:8888/{path}" for path in endpoints)
    assert read_address(text).endpoints == urls


def test_a_token_is_taken_out_of_the_address():
    address = read_address("http://localhost:8888/lab?token=geheim&x=1")
    assert address.token == "geheim"
    assert "geheim" not in repr(address)
    assert address.server == "http://localhost:8888"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sales.ipynb", "mcp-notebook stdio FILE"),
        ("not an address", "is not an address"),
        ("ftp://example.org/", "begins with http"),
        ("https://", "begins with http"),
        ("http://[::1", "Copy it again"),
        ("http://localhost:port/", "Copy it again"),
        ("https://ada:geheim@example.org/mcp", "--token-file"),
        (f"{HUB}/hub/home", "Open your server in the browser"),
        (f"{HUB}/hub/login?next=%2Fuser%2Fx", "Open your server in the browser"),
        ("binder:rain", "binder:OWNER/REPO/REF"),
    ],
)
def test_an_invalid_address_is_an_error_with_the_next_step(text, reason):
    with pytest.raises(RemoteError, match=reason) as told:
        read_address(text)
    assert "geheim" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "repository"),
    [
        ("binder:ada/rain@main", ("https://mybinder.org", "gh/ada/rain/main", None)),
        ("binder:ada/rain", ("https://mybinder.org", "gh/ada/rain/HEAD", None)),
        (
            "binder:ada/rain/main?labpath=notebooks%2Fa.ipynb",
            ("https://mybinder.org", "gh/ada/rain/main", "notebooks/a.ipynb"),
        ),
        ("binder:ada/rain/fix/leap", ("https://mybinder.org", "gh/ada/rain/fix/leap", None)),
        ("binder:ada/rain@fix/leap", ("https://mybinder.org", "gh/ada/rain/fix/leap", None)),
        (
            "https://mybinder.org/v2/gh/ada/rain/main?labpath=notebooks%2Fa.ipynb",
            ("https://mybinder.org", "gh/ada/rain/main", "notebooks/a.ipynb"),
        ),
        (
            "https://example.org/binder/v2/gl/ada%2Frain/main?urlpath=lab%2Ftree%2Fa.ipynb%3Fx",
            ("https://example.org/binder", "gl/ada%2Frain/main", "a.ipynb"),
        ),
        (
            "https://mybinder.org/v2/gh/ada/rain/main?urlpath=lab",
            ("https://mybinder.org", "gh/ada/rain/main", None),
        ),
    ],
)
def test_a_repository_for_binder(text, repository):
    assert read_address(text) == BinderRepository(*repository)


@given(PATHS, NAMES, NAMES, PATHS)
def test_any_notebook_of_any_user_is_found(base, user, name, folders):
    base = [word for word in base if word not in {"user", "hub", "v2"}]
    notebook = [*folders, f"{name}.ipynb"]
    if notebook[0].startswith("RTC:"):
        return
    path = "/".join(
        quote(word, safe="") for word in [*base, "user", user, "lab", "tree", *notebook]
    )
    address = read_address(f"{HUB}/{path}?token=t")
    quoted = [
        quote(word, safe="!$&'()*+,;=:@~")
        for word in [*base, "user", user, "mcp-notebook", *notebook]
    ]
    if not {"mcp", "mcp-notebook"} & set(folders):
        assert address.endpoints == (f"{HUB}/{'/'.join(quoted)}",)
    assert address.token == "t"


@given(st.text(max_size=60) | st.from_regex(r"(https?://)?[\w.@:\[\]-]{1,20}(/[^\s]{0,30})?"))
@example("http://\u2100/")
@example("http://[v1.a]/mcp")
@example("http://a:99999/mcp")
@example("//")
def test_any_text_is_an_address_or_says_why_not(text):
    try:
        address = read_address(text)
    except RemoteError:
        return
    if isinstance(address, Address):
        assert all(url.startswith(("http://", "https://")) for url in address.endpoints)
        assert all(url.isprintable() for url in address.endpoints)


@pytest.mark.parametrize(
    "url", ["https://example.org/mcp", "http://localhost:1/mcp", "http://[::1]:1/mcp"]
)
def test_what_nobody_else_reads_may_be_connected_to(url):
    check_encryption(url, insecure=False)


def test_another_machine_without_encryption_needs_to_be_insisted_on():
    with pytest.raises(RemoteError, match=r"http://example\.org:80.*--insecure"):
        check_encryption("http://example.org:80/mcp", insecure=False)
    check_encryption("http://example.org:80/mcp", insecure=True)


@pytest.mark.parametrize(
    ("text", "notebook"),
    [
        (f"{HUB}/user/x/lab/tree/d/a%20b.ipynb", "d/a b.ipynb"),
        (f"{HUB}/user/x/lab/tree/RTC:a.ipynb", "a.ipynb"),
        (f"{HUB}/user/x/mcp/d/a.ipynb", "d/a.ipynb"),
        (f"{HUB}/user/x/mcp/a", None),
        (f"{HUB}/user/x/lab/tree/d", None),
        (f"{HUB}/user/x/lab", None),
        ("https://example.org/tools", None),
    ],
)
def test_the_notebook_that_an_address_names(text, notebook):
    assert read_address(text).notebook == notebook


@pytest.mark.parametrize(
    ("text", "server"),
    [
        (f"{HUB}/user/x/lab", (HUB, "x", "")),
        (f"{HUB}/hub/user/x/lab/tree/a.ipynb", (HUB, "x", "")),
        (f"{HUB}/jupyter/user/x%40y/second/lab", (f"{HUB}/jupyter", "x@y", "second")),
        (f"{HUB}/user/a%20b/mcp/a.ipynb", (HUB, "a%20b", "")),
    ],
)
def test_the_server_of_a_user_that_an_address_belongs_to(text, server):
    assert find_server(read_address(text).server) == HubServer(*server)


def test_the_hub_of_a_users_server():
    assert find_hub(f"{HUB}/jupyter/user/x/mcp") == f"{HUB}/jupyter"
    assert find_hub(f"{HUB}/user/x/mcp") == HUB
    assert find_hub("http://localhost:8888/mcp") is None
