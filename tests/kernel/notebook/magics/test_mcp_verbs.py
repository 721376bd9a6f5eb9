"""`%mcp`: what each verb shows and does, and what it says about wrong input."""

import os
import re

import pytest
from bs4 import BeautifulSoup
from live import Link, record_of, tools_of
from msgspec import structs

from mcp_notebook.discovery.records import read_start_time, write_record
from mcp_notebook.kernel.notebook.magics.mcp_verbs import VERBS, describe_verbs


@pytest.mark.smoke
def test_mcp_list_and_status_show_the_tools(rain):
    assert "rain(city" in rain.ok("%mcp list").text
    assert re.search(r"^Tools +rain$", rain.ok("%mcp status").text, re.MULTILINE)
    rain.ok("del rain")
    assert "No tools yet" in rain.ok("%mcp list").text
    assert "No tools yet" in rain.ok("%mcp status").text


def test_mcp_list_is_in_the_order_of_clients_and_says_when_names_may_be_longer(rain):
    rain.ok("%%mcp_tool --priority 1\ndef first(): 'First.'")
    rain.ok("%%mcp_tool --priority -1\ndef last(): 'Last.'")
    rain.ok("%%mcp_tool\ndef middle(): 'Middle.'")
    output = rain.ok("%mcp list")
    head, *lines = output.displays[0]["text/plain"].splitlines()
    assert head.split() == ["tool", "description"]
    assert [line.partition("(")[0] for line in lines] == ["first", "rain", "middle", "last"]
    assert output.stdout == ""
    folder = rain.home / ".mcp-notebook" / "kernels"
    record = structs.replace(
        record_of(rain),
        id="b",
        name="other",
        pid=os.getpid(),
        started=read_start_time(os.getpid()),
    )
    path = write_record(folder, record)
    try:
        assert "open: other." in rain.ok("%mcp list").stdout
    finally:
        path.unlink()


@pytest.mark.parametrize(
    "arguments",
    ["city=Seattle year=2013", 'city="Seattle" year=2013', '{"city": "Seattle", "year": 2013}'],
)
def test_mcp_call_shows_what_a_client_gets(rain, arguments):
    assert rain.ok(f"%mcp call rain {arguments}").stdout.strip() == "Seattle 2013"


def test_a_parameter_has_its_own_name_beside_that_for_clients(kernel):
    kernel.ok("%%mcp_tool\ndef wave(μ, λ=2):\n    return [μ, λ]")
    for name in ("μ", "µ", "m"):  # the second is the micro sign, which Python reads as the letter
        said = kernel.ok(f"%mcp call wave {name}=1 λ=3").stdout
        assert ("[1,3]" in said) == (name != "m")


def test_pairs_of_a_call_may_hold_the_notebooks_variables_and_an_object_is_taken_as_it_stands(rain):
    rain.ok("place, years = 'New York', [2013]")
    code = "%mcp call rain city=$place year={years[0]}"
    assert rain.ok(f"def f():\n    place = 'Seattle'\n    {code}\nf()").stdout == "Seattle 2013\n"
    assert "'{place}'" in rain.ok('%mcp call rain {"city": "{place}"}').stdout
    assert "{place}" in rain.run("%mcp log {place}").text


@pytest.mark.smoke
def test_mcp_log_shows_the_last_calls_and_those_that_failed(rain):
    assert rain.ok("%mcp log").stdout == "No calls yet.\n"
    assert rain.ok("%mcp log rain --errors").stdout == "No call of rain has failed.\n"
    with Link(record_of(rain)) as link:
        link.call("rain", city="Seattle")
        link.call("rain", city="Paris")
    [data] = rain.ok("%mcp log").displays
    assert ">rain(city='Seattle')</td>" in data["text/html"]
    _, first, second = data["text/plain"].splitlines()
    assert "unknown client  rain(city='Seattle')  done" in first
    assert "rain(city='Paris')" in second
    assert "failed" in second
    rain.ok("%mcp call rain city=Seattle")
    [data] = rain.ok("%mcp log -n 1").displays
    assert "this notebook" in data["text/plain"].splitlines()[1]
    assert "1 of 3 calls" in data["text/plain"].splitlines()[2]
    assert "Paris" in rain.ok("%mcp log --errors rain").displays[0]["text/plain"].splitlines()[1]
    status = rain.ok("%mcp status").text
    assert "3 calls, 1 failed (`%mcp log`): rain (3, 1 failed)\n" in status
    assert "by unknown client (2), this notebook (1)\n" in status


def test_mcp_log_and_list_say_what_is_a_prompt_a_resource_or_a_skill(kernel):
    kernel.ok("%%mcp_prompt report(year: int)\nOn {year}.")
    kernel.ok("%%mcp_resource data://{name}\nname")
    kernel.ok("%%mcp_skill weekly\nUse this.")
    kernel.ok("%mcp call report year=2026\n%mcp call data_name name=x")
    [data] = kernel.ok("%mcp log").displays
    _, first, second = data["text/plain"].splitlines()
    assert "[prompt] report(year=2026)" in first
    assert "[resource] data_name(name='x')" in second
    [data] = kernel.ok("%mcp list").displays
    assert "[skill] Use this." in data["text/plain"]


def test_who_misses_a_tool_that_was_deleted_is_told_how_it_comes_back(rain, rain_cell):
    rain.ok("del rain")
    status = rain.ok("%mcp status").text
    assert "Problems  rain: `rain` was deleted. That was at " in status
    with Link(record_of(rain)) as link:
        assert link.welcome.missing["rain"].reason == "`rain` was deleted."
    rain.ok(rain_cell)
    assert "Problems" not in rain.ok("%mcp status").text


def test_a_coroutine_that_the_notebook_calls_is_stopped_by_its_time_limit(kernel):
    kernel.ok(
        "%%mcp_tool --timeout 200ms\nimport asyncio\nasync def waits() -> int:\n    'Waits.'\n"
        "    await asyncio.sleep(3600)"
    )
    assert "it ran longer than 0.2 s" in kernel.ok("%mcp call waits").stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%mcp stop 7", "No call 7 waits or runs. Open calls: none."),
        ("%mcp panel 9", "`%mcp panel` takes no arguments: remove `9`."),
        ("%mcp serve 9000", "`%mcp serve` takes only `--stop`: remove `9000`."),
        ("%mcp help sreve", "Did you mean `%mcp serve`?"),
        ("%mcp statsu", "Did you mean `%mcp status`?"),
        ("%mcp Status", "Did you mean `%mcp status`?"),
        ("%mcp tool f", "Did you mean `%mcp_tool`?"),
        ("%mcp rain year=2015", "`rain` is a tool, not a verb: write `%mcp call rain`."),
        ("%mcp call", "Which tool?"),
        ("%mcp call nothing", "'nothing'"),
        ("%mcp allow", "Which question? Write its number. Open questions: none."),
        ("%mcp deny it", "Which question? Write its number. Open questions: none."),
        ("%mcp allow 7", "Question 7 is not open"),
        ("%mcp allow 7 always", "Write `%mcp allow 7` or `%mcp allow 7 session`."),
        (
            "%mcp xyz",
            "It has status, panel, stop, list, call, check, log, record, allow, deny, propose, ",
        ),
        ("%mcp call rain Seattle", "`Seattle` is not an argument: write `name=value`"),
        ("%mcp call rain {'city': 1}", "The arguments are not a valid JSON object"),
        (f'%mcp call rain {{"a": {"[" * 100_000}', "The arguments are nested too deeply"),
        (f"%mcp call rain a={'[' * 100_000}", "a: nested too deeply"),
        ('%mcp call rain city="New', "close the quote, or put it between quotes of the other kind"),
        ("%mcp log rian", "did you mean 'rain'?"),
        ("%mcp log --all", "`%mcp log` has no option `--all`"),
        ("%mcp call rian city=Seattle", "did you mean 'rain'?"),
    ],
)
def test_wrong_input_gets_one_sentence_that_says_what_to_do(rain, line, said):
    output = rain.run(line)
    assert output.error is not None
    assert output.error.startswith("UsageError")
    assert said in output.error
    assert list(tools_of(rain)) == ["rain"]


@pytest.mark.smoke
def test_the_help_of_mcp_has_every_verb_with_its_arguments(kernel):
    shown = kernel.open_pager("%mcp?")
    words = " ".join(shown.split())
    for name, verb in VERBS.items():
        assert f"%mcp {name} {verb.arguments}".strip() in words
        assert verb.help in words
    text, _, _ = shown.partition("\x1b[31mFile:")
    assert max(map(len, text.splitlines())) <= 92  # the width of a notebook, not of a terminal
    assert "%mcp status`` never shows a running call on the main thread" in words


def test_the_help_is_for_all_verbs_or_one(kernel):
    assert kernel.ok("%mcp help").stdout.strip() == describe_verbs().strip()
    assert kernel.ok("%mcp --help").stdout.strip() == describe_verbs().strip()
    for line in ("%mcp help serve", "%mcp serve -h", "%mcp serve --help"):
        shown = kernel.ok(line).stdout
        assert shown.startswith("  %mcp serve [--stop]\n      serve all open notebooks")
        assert "%mcp log" not in shown


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("%mcptool f", "Did you mean `%mcp_tool`?"),
        ("%%mcp_tols\ndef f(): pass", "Did you mean `%%mcp_tool`?"),
        ("%%mcp-tool\ndef f(): pass", "Did you mean `%%mcp_tool`?"),
        ("%%MCP_TOOL\ndef f(): pass", "Did you mean `%%mcp_tool`?"),
        ("%%mcp tool\ndef f(): pass", "Did you mean `%%mcp_tool`?"),
        ("%mcpp status", "Did you mean `%mcp`?"),
        ("%mcp_status", "Did you mean `%mcp status`?"),
        ("%mcp-list", "Did you mean `%mcp list`?"),
    ],
)
def test_a_magic_that_is_misspelt_gets_a_suggestion(kernel, code, said):
    output = kernel.run(code)
    assert "not found" in output.error
    assert said in output.stderr
    assert "Did you mean" not in kernel.run("%nonsense").stderr


def test_a_decorator_without_its_import_gets_the_line_to_run(kernel):
    output = kernel.run("@mcp_tool\ndef f(): pass")
    assert "Run `from mcp_notebook import mcp_tool` first." in output.stderr


def test_stopping_a_notebook_that_is_not_served_is_not_an_error(kernel):
    assert kernel.ok("%mcp serve --stop").stdout == "Nothing was being served over HTTP.\n"


# -- the result of a call --------------------------------------------------------------------------


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def test_mcp_call_plays_a_sound_and_shows_a_document(kernel):
    kernel.ok(
        "%%mcp_tool\nfrom mcp_notebook import Audio, Resource\ndef heard() -> list:\n    'H.'\n"
        "    parts = [Resource('a:b', 'c'), Resource('a:d', b'\\0\\1', 'application/zip')]\n"
        "    return [Audio(b'ID3' + bytes(9), 'audio/mpeg'), *parts]\n"
    )
    output = kernel.ok("%mcp call heard")
    assert 'type="audio/mpeg"' in output.displays[0]["text/html"]
    assert output.stdout == "a:b (text/plain):\nc\na:d (application/zip, 2 bytes)\n"


def test_an_image_is_displayed_and_an_error_is_announced(kernel):
    kernel.ok(
        "%%mcp_tool\nfrom mcp_notebook import Image, ToolError\ndef seen() -> Image:\n    'S.'\n"
        f"    return Image(__import__('base64').b64decode({PNG!r}))\n"
        "def fails() -> None:\n    'F.'\n    raise ToolError('Not today.')"
    )
    assert kernel.ok("%mcp call seen").displays == [{"image/png": PNG}]
    assert kernel.ok("%mcp call fails").stdout == "The client would get an error:\nNot today.\n"


EVIL = """%%mcp_tool
from IPython.display import HTML, display
from mcp_notebook import Audio, Image, Resource, ResourceLink, Text
EVIL = 'x"><script>alert(1)</script><img src=x onerror=alert(1)>'

def evil() -> list:
    'E.'
    display(HTML(f"<audio src='data:audio/{EVIL};base64,dW5rbm93bg=='></audio>{EVIL}"))
    return [
        Text(EVIL),
        EVIL,
        Audio(b'unknown', f'audio/{EVIL}'),
        Image(b'alert(1)', 'application/javascript'),
        Image(b'<svg>', 'image/svg+xml'),
        Resource(EVIL, EVIL, EVIL),
        Resource('a:b', b'<script>', 'text/html'),
        ResourceLink('javascript:x', EVIL),
    ]
"""


def test_no_result_brings_a_script_into_the_notebook(kernel):
    """Somebody else's bytes and names, in all kinds of blocks."""
    kernel.ok(EVIL)
    output = kernel.ok("%mcp call evil")
    assert "<script>" in output.stdout  # as text
    kinds = {kind for data in output.displays for kind in data}
    assert kinds == {"text/plain", "text/html"}
    for data in output.displays:
        tags = BeautifulSoup(data["text/html"], "html.parser").find_all()
        assert [tag.name for tag in tags] == ["audio", "source"]
