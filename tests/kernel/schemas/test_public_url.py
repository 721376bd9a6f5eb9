"""Parameters for public addresses: what is refused before a function runs."""

import ipaddress
import pickle
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import mcp_notebook
from mcp_notebook import PublicUrl
from mcp_notebook.errors import InvalidArguments
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.public_url import check_url, is_public

PUBLIC, OTHER = "93.184.216.34", "2606:2800:220:1::1"
SITE = f"http://{PUBLIC}"


def load(url: PublicUrl): ...
def load_all(urls: list[PublicUrl]): ...


class Source(BaseModel):
    url: PublicUrl | None = None


def load_source(source: Source): ...


def validate(value, function=load, name="url"):
    return read_function_schema(function).validate({name: value})[name]


def refusal(value):
    with pytest.raises(InvalidArguments) as raised:
        validate(value)
    return str(raised.value)


# -- the check -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1"),
        *("240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1"),
        *("fd12::1", "ff02::1", "fec0::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::1"),
        "2001:0:5ef5:79fd::1",
    ],
)
def test_an_address_of_this_machine_or_a_private_network_is_not_public(address):
    assert not is_public(address)
    with pytest.raises(ValueError, match=r"name.example is not public"):
        check_url("http://name.example", lambda *_: [PUBLIC, address])


@pytest.mark.parametrize(
    "address", [PUBLIC, OTHER, "8.8.8.8", f"::ffff:{PUBLIC}", "64:ff9b::808:808"]
)
def test_an_address_of_the_internet_is_public(address):
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_counts_the_same_within_ipv6(address):
    same = [f"::ffff:{address}", str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80)))]
    assert [*map(is_public, same)] == [is_public(str(address))] * 2
    assert not (is_public(str(address)) and (address.is_private or address.is_multicast))


def test_an_address_is_refused_in_one_sentence_before_the_function_runs():
    for sent, said in {
        "http://localhost:8000/a": "localhost is not public, but at a private or reserved address: "
        "use a host of the public internet.",
        "http://0x7f.1/": "127.0.0.1 is not public, but at a private or reserved address: use a "
        "host of the public internet.",
        "http://2130706433": "127.0.0.1 is not public, but at a private or reserved address: use a "
        "host of the public internet.",
        "http://[::ffff:10.0.0.1]/": "[::ffff:a00:1] is not public, but at a private or reserved "
        "address: use a host of the public internet.",
        "http://a:b@93.184.216.34/": "an address with a user name or a password is not allowed: "
        "remove it.",
        "ftp://example.com/a": "only http and https are allowed, not ftp.",
        "file:///etc/passwd": "only http and https are allowed, not file.",
        "sales.csv": "it is not a web address (relative URL without a base): write "
        "'https://host/path'.",
        "": "it is not a web address (input is empty): write 'https://host/path'.",
        5: "allowed: web address as text.",
    }.items():
        text = refusal(sent)
        assert text.startswith("url: got ")
        assert text.endswith(f"; {said}"), text
    for sent in [
        "http://\0/",
        "http://a b/",
        "http://\udc80/",
        "https://",
        "http://[::1",
        "\n" * 9,
    ]:
        assert "\n" not in refusal(sent)


def test_a_host_that_cannot_be_found_is_named():
    def refuse(*_):
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(ValueError, match=r"nowhere.example cannot be found \(Name or serv"):
        check_url("https://nowhere.example/", refuse)
    with pytest.raises(ValueError, match=r"the host empty.example has no address"):
        check_url("https://empty.example/", lambda *_: [])


def test_the_function_gets_a_string_in_normal_form():
    url = validate(f"HTTP://{PUBLIC}\\@127.0.0.1/a b?q=é")
    assert url == f"{SITE}/@127.0.0.1/a%20b?q=%C3%A9"
    assert isinstance(url, str)
    assert pickle.loads(pickle.dumps(url)) == url


def test_it_is_checked_in_lists_and_models():
    assert validate([SITE], load_all, "urls") == [f"{SITE}/"]
    assert validate({"url": SITE}, load_source, "source").url == f"{SITE}/"
    with pytest.raises(InvalidArguments, match=r"urls\[1\]: got 'http://127.0.0.1'"):
        validate([SITE, "http://127.0.0.1"], load_all, "urls")
    assert Source(url=SITE).model_dump_json() == f'{{"url":"{SITE}/"}}'


def test_clients_see_that_it_is_a_public_address():
    assert read_function_schema(load).input_schema["properties"]["url"] == {
        "type": "string",
        "format": "uri",
        "description": "A public web address, http or https.",
    }


def test_an_author_makes_one_with_the_same_check():
    assert PublicUrl(SITE) == f"{SITE}/"
    with pytest.raises(ValueError, match="localhost is not public"):
        PublicUrl("http://localhost")
    default = PublicUrl(SITE)

    def later(url: PublicUrl = default): ...

    assert read_function_schema(later).validate({})["url"] is default
    assert mcp_notebook.PublicUrl is PublicUrl
