"""What tools log, in a real kernel."""

import logging

from live import Link, kernel_with, record_of, text_of

from mcp_notebook.content import Result
from mcp_notebook.kernel.calls.environment import level_of
from mcp_notebook.kernel.tools.context import LEVELS
from mcp_notebook.wire import messages

TOOLS = '''
import logging
from mcp_notebook import Context, mcp_tool
log = logging.getLogger("sales.eu")

def _talk(ctx):
    log.debug("quiet")
    log.warning("%d rows are odd", 3)
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("failed")
    log.error("%d", "no number")
    ctx.log("from the context")
    return "done"

@mcp_tool
def talk(ctx: Context) -> str:
    """Log."""
    return _talk(ctx)

'''


kernel = kernel_with(TOOLS, "logging.raiseExceptions = False")


def logs_of(kernel, tool, level):
    with Link(record_of(kernel)) as link:
        link.send(messages.Call(id=1, tool=tool, arguments={}, log_level=level))
        logs = []
        while not isinstance(message := link.receive(), Result):
            logs += [message] if isinstance(message, messages.Log) else []
    return logs, text_of(message)


def test_records_and_messages_of_the_asked_level_and_above_are_sent_in_order(kernel):
    logs, _ = logs_of(kernel, "talk", "info")
    assert [(log.level, log.logger) for log in logs] == [
        ("warning", "sales.eu"), ("error", "sales.eu"), ("error", "sales.eu"), ("info", None)
    ]  # fmt: skip
    assert logs[0].text == "3 rows are odd"
    assert logs[1].text.startswith("failed\nTraceback")
    assert logs[1].text.endswith("ZeroDivisionError: division by zero")
    assert logs[2].text == "%d"
    assert logs[3].text == "from the context"


def test_what_is_less_severe_is_not_sent(kernel):
    logs, _ = logs_of(kernel, "talk", "error")
    assert {log.level for log in logs} == {"error"}


def test_nothing_is_sent_to_who_did_not_ask(kernel):
    logs, text = logs_of(kernel, "talk", None)
    assert logs == []
    assert "from the context" not in text


def test_logging_in_cells_is_as_ever_also_after_unloading(kernel):
    logs_of(kernel, "talk", "debug")
    assert kernel.ok("log.warning('mine')").stderr == "mine\n"
    kernel.ok("%unload_ext mcp_notebook")
    assert kernel.ok("print(logging.Logger.callHandlers.__module__)").stdout == "logging\n"
    kernel.ok("%load_ext mcp_notebook")
    kernel.ok(TOOLS)


def test_every_python_level_has_one_of_mcps():
    assert level_of(1) == "debug"
    assert level_of(logging.WARNING + 1) == "warning"
    assert level_of(1000) == "emergency"
    for level, number in LEVELS.items():
        assert level_of(number) == level
