"""The route of the stop buttons, asked as a page of the server asks it."""

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from jupyter_servers import HEADERS, wait_for
from live import TIMEOUT, Link, text_of

from mcp_notebook.discovery import list_live_records
from mcp_notebook.jupyter.routes import ROUTES
from mcp_notebook.kernel.notebook.panel.stop_button import ROUTE


@pytest.fixture
def link(server):
    """A link to the kernel of one of the notebooks."""
    records = list_live_records(server.home / ".mcp-notebook" / "kernels")
    with Link(next(record for record in records if record.name == "rain")) as link:
        yield link


@pytest.fixture
def page(server):
    """A page of the server: it has the cookies, and no token."""
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as page:
        page.get("api/status", headers=HEADERS)
        page.get("login", follow_redirects=True)
        assert page.get("api/kernels").status_code == 200
        yield page


def stop(page, kernel, call, **headers):
    xsrf = {"X-XSRFToken": page.cookies.get("_xsrf") or ""}
    return page.post(ROUTE, json={"kernel": kernel, "call": call}, headers=xsrf | headers)


def test_the_route_is_the_one_that_the_buttons_know():
    assert ROUTE in [pattern for pattern, _ in ROUTES]


def test_a_page_stops_a_call_that_keeps_its_kernel_busy(page, link, tmp_path):
    seen = tmp_path / "seen"
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(link.call, "wait_to_be_stopped", seen=str(seen))
        wait_for((tmp_path / "seen-began").exists)
        with Link(link.record) as other:
            (call,) = other.welcome.calls
        answer = stop(page, link.record.id, call.number)
        assert answer.status_code == 200
        assert answer.json()["message"] == f"Stopped rain:{call.number} (wait_to_be_stopped)."
        assert "The user stopped the call" in text_of(result.result(TIMEOUT))
    assert (tmp_path / "seen-stopped").exists()


def test_a_call_that_has_ended_is_a_conflict_that_says_so(page, link):
    answer = stop(page, link.record.id, 999_999)
    assert answer.status_code == 409
    assert "it may have ended" in answer.json()["message"]


@pytest.mark.parametrize(
    ("kernel", "call"),
    [("--help", 1), ("", 1), (None, 1), ("a1; rm", 1), ("a1", "1"), ("a1", True), ("a1", 0)],
)
def test_what_is_no_call_is_refused(page, kernel, call):
    answer = stop(page, kernel, call)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Say which call to stop")


def test_only_pages_of_the_server_may_ask(page, link, server):
    body = {"kernel": link.record.id, "call": 1}
    assert page.post(ROUTE, json=body).status_code == 403, "without the XSRF token"
    with httpx2.Client(base_url=server.url, timeout=TIMEOUT, trust_env=False) as stranger:
        assert stranger.post(ROUTE, json=body).status_code in (401, 403)
