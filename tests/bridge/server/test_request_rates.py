"""Too many requests and calls over stdio and HTTP, in both eras; no notebook is open."""

import json
import re
import subprocess

import pytest
from bridges import INITIALIZE, TOKEN, ask, bridge
from endpoints import modern
from limits_files import set_limits

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "nobody", "arguments": {}},
}
WHEN = r"Too many {} per minute\. Try again in \d+ seconds?\."
ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])


def form(message, number, era):
    """Return a request with this id, and the HTTP headers of its era."""
    message = message | {"id": number}
    return (message, {}) if era == "handshake" else modern(message)


def over_stdio(home, era, requests, **limits):
    """Return the answers to requests over stdio."""
    env = set_limits(home, **limits)
    with bridge(home, "stdio", env=env, stdin=subprocess.PIPE) as running:
        if era == "handshake":
            running.send(json.dumps(INITIALIZE).encode())
            running.message()
        for number, message in enumerate(requests):
            running.send(json.dumps(form(message, number, era)[0]).encode())
            answer = running.message()
            assert answer["id"] == number
            yield answer


def over_http(home, era, requests, **limits):
    """Return the HTTP responses to requests."""
    env = set_limits(home, **limits)
    env["MCP_NOTEBOOK_TOKEN"] = TOKEN
    with bridge(home, "serve", "--port", "0", env=env) as running:
        session = {}
        if era == "handshake":
            session["Mcp-Session-Id"] = ask(running.url).headers["Mcp-Session-Id"]
        for number, message in enumerate(requests):
            body, headers = form(message, number, era)
            yield ask(running.url, body=json.dumps(body), headers=session | headers)


def read(response):
    """Return the message in a response, in whichever form it came."""
    text = response.body.decode()
    return json.loads(text.rpartition("data: ")[2])


def is_unknown(answer):
    return "Unknown tool" in answer["result"]["content"][0]["text"]


@ERAS
def test_a_call_over_stdio_beyond_the_limit_is_answered_with_when_to_try_again(home, era):
    *others, last = over_stdio(home, era, [CALL] * 3, max_caller_calls_per_minute=2)
    assert all(is_unknown(answer) for answer in others)
    assert last["result"]["isError"]
    said = last["result"]["content"][0]["text"]
    assert re.fullmatch(WHEN.format("calls: one caller may make 2"), said)


@ERAS
def test_a_call_over_http_beyond_the_limit_is_answered_with_when_to_try_again(home, era):
    *others, last = over_http(home, era, [CALL] * 3, max_caller_calls_per_minute=2)
    assert all(is_unknown(read(answer)) for answer in others)
    assert last.status == 200
    said = read(last)["result"]["content"][0]["text"]
    assert re.fullmatch(WHEN.format("calls: one caller may make 2"), said)


@ERAS
def test_a_request_over_stdio_beyond_the_limit_is_an_error_that_says_when_to_try_again(home, era):
    count = 4 if era == "handshake" else 5  # the handshake is a request, too
    *others, last = over_stdio(home, era, [LIST] * count, max_caller_calls_per_minute=2)
    assert all("result" in answer for answer in others)
    said = last["error"]["message"]
    assert re.fullmatch(WHEN.format("requests: one caller may make 4"), said)


@ERAS
def test_a_request_over_http_beyond_the_limit_has_status_429_and_says_when_to_try_again(home, era):
    count = 4 if era == "handshake" else 5
    *others, last = over_http(home, era, [LIST] * count, max_caller_calls_per_minute=2)
    assert all(answer.status == 200 for answer in others)
    assert last.status == 429
    seconds = int(last.headers["Retry-After"])
    assert 0 < seconds <= 60
    assert f"Try again in {seconds} second" in last.error["message"]
