from mcp_notebook.bridge.access.refusals import MAX_REFUSALS_LOGGED, RefusalLog


def test_a_flood_of_refused_requests_is_a_few_lines_and_a_number(caplog):
    notes, now = [], [0.0]
    log = RefusalLog(lambda *note: notes.append(note), clock=lambda: now[0])
    for port in range(100):
        log.note(("10.0.0.1", port), "the bearer token is wrong")
    lines = list(caplog.messages)
    assert len(lines) == MAX_REFUSALS_LOGGED
    assert lines[0].endswith(" refused a request from 10.0.0.1 port 0: the bearer token is wrong")
    assert lines[-1].endswith("(more in this minute are only counted)")
    now[0] = 60.0
    log.note(None, "the bearer token is missing")
    counted, one = caplog.messages[len(lines) :]
    assert counted == f"refused {100 - len(lines)} more requests before that"
    assert one.endswith(" from an unknown address port 0: the bearer token is missing")
    assert notes[0] == ("10.0.0.1 port 0", "the bearer token is wrong", 1)
    assert notes[-2] == ("several addresses", "too many to have a line each", 100 - len(lines))
    assert sum(count for _, _, count in notes) == 101
