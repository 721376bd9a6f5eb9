from mcp_notebook.bridge.access import refusals
from mcp_notebook.bridge.access.refusals import MAX_REFUSALS_LOGGED, RefusalLog


def test_a_flood_of_refused_requests_is_a_few_lines_and_a_number(monkeypatch, caplog):
    notes = []
    log = RefusalLog([lambda *note: notes.append(note)])
    for port in range(100):
        log.note(("10.0.0.1", port), "the bearer token is wrong")
    lines = list(caplog.messages)
    assert len(lines) == MAX_REFUSALS_LOGGED
    assert lines[0].endswith(" refused a request from 10.0.0.1 port 0: the bearer token is wrong")
    assert lines[-1].endswith("(more in this minute are only counted)")
    monkeypatch.setattr(refusals, "_REFUSALS_SECONDS", 0)  # the minute is over
    log.note(None, "the bearer token is missing")
    counted, one = caplog.messages[len(lines) :]
    assert counted == f"refused {100 - len(lines)} more requests before that"
    assert one.endswith(" from an unknown address port 0: the bearer token is missing")
    assert notes[0] == ("10.0.0.1 port 0", "the bearer token is wrong", 1)
    assert notes[-2] == ("several addresses", "too many to have a line each", 100 - len(lines))
    assert sum(count for _, _, count in notes) == 101
