"""The sets of limits, and files of single ones."""

from dataclasses import fields

import pytest
from limits_files import set_limits

from mcp_notebook.errors import SettingsError
from mcp_notebook.settings.limits import SETS, Limits
from mcp_notebook.settings.settings import Settings, list_sources

VARIABLE = "MCP_NOTEBOOK_LIMITS"


def make(chosen):
    return Settings.from_environment({VARIABLE: str(chosen)})


def fail(chosen):
    """Return what is said about a file that cannot be used."""
    with pytest.raises(SettingsError) as caught:
        make(chosen)
    return str(caught.value)


def test_a_word_chooses_all_limits():
    assert make("normal") == Settings()
    strict, open_ = make("strict"), make("open")
    assert (strict.max_caller_calls, open_.max_caller_calls) == (16, 4_096)
    assert strict.max_caller_calls_per_minute == 600
    for limit in fields(Limits):
        assert getattr(strict, limit.name) == limit.metadata["sets"]["strict"]


def test_no_set_has_a_number_that_a_file_may_not_have():
    for limit in fields(Limits):
        numbers = [limit.metadata["sets"][name] for name in SETS]
        least, most = limit.metadata["ge"], limit.metadata["le"]
        assert all(least <= number <= (most or number) for number in numbers), limit.name
        assert {type(number) for number in numbers} == {type(limit.default)}


def test_strict_never_allows_clients_more_and_open_never_less():
    for limit in fields(Limits):
        if limit.name != "audit_max_bytes":  # strict keeps more of what has happened
            strict, normal, open_ = (limit.metadata["sets"][name] for name in SETS)
            assert strict <= normal <= open_, limit.name


def test_a_file_has_single_numbers_and_leaves_the_others(tmp_path):
    file = set_limits(tmp_path, max_waiting_calls=7, task_ttl=2)[VARIABLE]
    assert make(file) == Settings(limits=file, max_waiting_calls=7, task_ttl=2.0)
    assert list_sources({VARIABLE: file}) == {
        "limits": VARIABLE,
        "max_waiting_calls": file,
        "task_ttl": file,
    }


def test_a_file_may_start_from_another_set(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('base = "strict"\nmax_waiting_calls = 7\n')
    settings = make(file)
    assert (settings.max_waiting_calls, settings.max_caller_calls) == (7, 16)
    assert list_sources({VARIABLE: str(file)})["max_caller_calls"] == str(file)


def test_a_child_in_another_folder_reads_the_same_file(tmp_path, monkeypatch):
    set_limits(tmp_path, max_waiting_calls=7)
    monkeypatch.chdir(tmp_path)
    settings = make("limits0.toml")
    assert Settings.from_environment(settings.environment()) == settings
    assert settings.environment()[VARIABLE] == str(tmp_path / "limits0.toml")


def test_what_is_neither_a_set_nor_a_file_is_named_with_what_is_allowed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fail("strikt") == (
        f"{VARIABLE}='strikt' is not valid: it must be strict, normal, open, or the path of a TOML "
        f"file, but {tmp_path / 'strikt'} cannot be read (No such file or directory)."
    )
    assert f"{VARIABLE}='~no-such-user/x' is not valid: " in fail("~no-such-user/x")
    assert f"{tmp_path} cannot be read (Is a directory)." in fail(tmp_path)


@pytest.mark.parametrize("content", [b"max_waiting_calls", b"a = \xff", b"a = 1\na = 2"])
def test_what_is_not_toml_is_named(tmp_path, content):
    (tmp_path / "limits.toml").write_bytes(content)
    said = fail(tmp_path / "limits.toml")
    assert f"{tmp_path / 'limits.toml'} is not TOML (" in said
    assert "such as `max_caller_calls = 100`" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "max_caller_call = 7",
            "Unknown limit 'max_caller_call' in FILE. Did you mean max_caller_calls",
        ),
        ("zzz = 7", "Unknown limit 'zzz' in FILE. The limits are max_caller_calls_per"),
        (
            "max_waiting_calls = 0",
            "max_waiting_calls = 0 in FILE is not valid: it must be a whole number of at ",
        ),
        (
            "max_waiting_calls = 1.5",
            "max_waiting_calls = 1.5 in FILE is not valid: it must be a whole number",
        ),
        (
            "max_waiting_calls = '7'",
            "max_waiting_calls = '7' in FILE is not valid: it must be a whole number",
        ),
        (
            "max_waiting_calls = true",
            "max_waiting_calls = True in FILE is not valid: it must be a whole number",
        ),
        ("max_request_bytes = 1", "it must be a whole number from 65,536 to 33,554,432."),
        (
            "task_ttl = nan",
            "task_ttl = nan in FILE is not valid: it must be a number from 1 to 31,",
        ),
        (
            "task_ttl = inf",
            "task_ttl = inf in FILE is not valid: it must be a number from 1 to 31,",
        ),
        ('base = "loose"', "base = 'loose' in FILE is not valid: it must be one of strict, normal"),
        ("base = [1]", "base = [1] in FILE is not valid: it must be one of strict, normal, open."),
        (
            "[max_waiting_calls]",
            "max_waiting_calls = {} in FILE is not valid: it must be a whole number",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_file_and_what_is_allowed(tmp_path, line, said):
    file = tmp_path / "limits.toml"
    file.write_text(line)
    assert said.replace("FILE", str(file)) in fail(file)


def test_an_option_wins_over_the_variable():
    settings = Settings.from_environment({VARIABLE: "open"}, limits="strict")
    assert (settings.limits, settings.max_waiting_calls) == ("strict", 32)
    assert list_sources({VARIABLE: "open"}, limits="strict")["max_waiting_calls"] == "--limits"
