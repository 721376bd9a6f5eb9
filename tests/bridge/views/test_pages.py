"""Authors' pages: where the script in front of them stands, and their addresses."""

import pytest

from mcp_notebook.bridge.views.pages import add_helper, find_page_uri, find_tool, make_own_meta

HELPER = "\N{BULLET}"


def place(html):
    """Return a page with a bullet in place of its helper."""
    page = add_helper(html, {})
    start = page.index('<meta charset="utf-8"><script>')
    end = page.index("</script>", start) + len("</script>")
    assert "window.notebook = " in page[start:end]
    return page[:start] + HELPER + page[end:]


@pytest.mark.parametrize(
    ("html", "placed"),
    [
        ("<b>1</b>", "<!doctype html>•<b>1</b>"),
        ("", "<!doctype html>•"),
        ("\n<!DOCTYPE html>\n<b>1</b>", "\n<!DOCTYPE html>\n•<b>1</b>"),
        (
            "<!-- a --><!doctype html><html lang='en'><head><title>",
            "<!-- a --><!doctype html><html lang='en'><head>•<title>",
        ),
        ("<html>\n<!-- <head> -->\n<body>", "<!doctype html><html>\n<!-- <head> -->\n•<body>"),
        ("<header>1</header>", "<!doctype html>•<header>1</header>"),
        ("text <head>", "<!doctype html>•text <head>"),
    ],
)
def test_the_helper_stands_before_every_script_and_behind_the_doctype(html, placed):
    assert place(html) == placed


def test_the_helper_knows_the_names_that_tools_are_served_under():
    assert 'served = {"rain": "weather_rain"}' in add_helper("", {"rain": "weather_rain"})


def test_the_address_of_a_page_names_its_tool():
    assert find_tool(find_page_uri("own", "rain-2")) == "rain-2"
    assert find_page_uri(None, "rain") is find_page_uri("unknown", "rain") is None
    for uri in (
        "ui://mcp-notebook/result.html",
        "ui://mcp-notebook/tools/../x.html",
        "notebook://",
    ):
        assert find_tool(uri) is None


def test_a_page_without_hosts_has_no_policy_of_its_own():
    assert make_own_meta([]) == {"ui": {}}
    assert make_own_meta(["https://a.org"])["ui"]["csp"]["connectDomains"] == ["https://a.org"]


def test_a_name_does_not_end_the_helpers_script():
    page = add_helper("", {"a</script><b>": "x"})
    assert page.count("</script>") == 1
