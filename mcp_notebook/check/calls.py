"""Calls tools with their examples: in copies of the kernel, and as clients of both eras do.

Runs on the command's event loop.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import anyio

from mcp_notebook import meta_keys
from mcp_notebook._version import __version__
from mcp_notebook.bridge.http_app import OwnBridge
from mcp_notebook.bridge.kernels.link import Link
from mcp_notebook.bridge.kernels.running_call import NO_LISTENER
from mcp_notebook.check.subject import Answer, CheckedTool, Era, Subject, Trial, is_read_only
from mcp_notebook.content import Result, Text
from mcp_notebook.errors import CallError, CopyEnded
from mcp_notebook.mcp_client.client import McpClient
from mcp_notebook.mcp_client.http import HttpTransport
from mcp_notebook.outgoing_http import open_http_client
from mcp_notebook.protocol.errors import ProtocolError
from mcp_notebook.protocol.versions import LATEST_HANDSHAKE, LATEST_MODERN
from mcp_notebook.wire import content_blocks, messages

_PROGRAM = "mcp-notebook-check"
_VERSIONS: Mapping[Era, str] = {"modern": LATEST_MODERN, "legacy": LATEST_HANDSHAKE}
_MARGIN = 5.0
"""Seconds by which a connection outlasts the longest call."""
_END_NOTICED = 0.5
"""Seconds after which a link has noticed that its kernel is gone."""


async def call_examples(
    subject: Subject, bridge: OwnBridge, *, limit: float, calls_all: bool
) -> None:
    """Call each tool with each of its examples, in a copy of the kernel and by both clients.

    Args:
        subject: Its tools are called; gets what came of that.
        bridge: Serves the tools.
        limit: Seconds that one call may take.
        calls_all: Whether to call tools that are not read-only, too.
    """
    tools = [*subject.list_tools()]
    async with (
        _connect(bridge, "modern", limit) as modern,
        _connect(bridge, "legacy", limit) as legacy,
    ):
        clients: dict[Era, McpClient] = {"modern": modern, "legacy": legacy}
        for tool in tools:
            reason = _find_obstacle(tool, calls_all=calls_all)
            if reason is not None:
                subject.skipped[tool.name] = reason
                continue
            for example in list_examples(tool):
                trial = await try_example(bridge.link, tool, example, limit)
                subject.trials.append(trial)
                if trial.ended_process and is_read_only(tool):
                    continue  # the kernel would end as its copy did
                for era, client in clients.items():
                    answer = await _call(client, era, tool, example, limit)
                    if answer.is_error and await _has_ended(bridge.link):
                        subject.answers.append(replace(answer, ended_process=True))
                        tried = {each.tool for each in (*subject.answers, *subject.trials)}
                        rest = {each.name for each in tools} - tried - subject.skipped.keys()
                        reason = f"the kernel ended in a call of `{tool.name}`"
                        subject.skipped.update(dict.fromkeys(rest, reason))
                        return
                    subject.answers.append(answer)
                    if answer.is_late:
                        break


async def _has_ended(link: Link) -> bool:
    """Return whether the kernel is gone; a call is answered a moment before that is known."""
    with anyio.move_on_after(_END_NOTICED):
        await link.end.wait()
    return not link.is_open


async def try_examples(subject: Subject, link: Link, *, limit: float) -> None:
    """Call each read-only tool twice with each of its examples, only in copies of the kernel.

    Args:
        subject: Its tools are called; gets what came of that.
        link: To the kernel.
        limit: Seconds that one call may take.
    """
    for tool in subject.list_tools():
        reason = _find_obstacle(tool, calls_all=False)
        if reason is not None:
            subject.skipped[tool.name] = reason
            continue
        for example in list_examples(tool):
            for _ in range(2):
                trial = await try_example(link, tool, example, limit)
                subject.trials.append(trial)
                if trial.is_late:
                    break


def list_examples(tool: CheckedTool) -> Sequence[Mapping[str, Any]]:
    """Return the arguments to call a tool with: its examples, or none if it needs none."""
    if tool.info.examples:
        return tool.info.examples
    return [] if tool.info.input_schema.get("required") else [{}]


def _find_obstacle(tool: CheckedTool, *, calls_all: bool) -> str | None:
    """Return why a tool cannot be called; None if it can."""
    if not (is_read_only(tool) or calls_all):
        return "not declared read-only; `--all` calls such tools"
    if tool.info.revision is not None or tool.info.requires:
        return "a person has to answer during the call"
    if tool.info.task == "required":
        return "its calls are always tasks"
    return None if list_examples(tool) else "no example; write one, such as `--example year=2015`"


async def try_example(
    link: Link, tool: CheckedTool, arguments: Mapping[str, Any], limit: float
) -> Trial:
    """Call a tool in a copy of the kernel."""
    began = monotonic()
    result, failure, is_late = Result(), None, False
    client = messages.ClientInfo(name=_PROGRAM, version=__version__)
    try:
        with anyio.fail_after(limit):
            call = link.start_call(tool.info.name, dict(arguments), client=client, is_trial=True)
            with call.cancel_on_error():
                result = await call.follow(NO_LISTENER) or result
    except TimeoutError:
        is_late = True
    except CallError as error:
        failure = str(error)
    packed = content_blocks.pack_result(0, result)[0]
    return Trial(
        tool=tool.name,
        arguments=arguments,
        result={
            "content": packed.content,
            "structuredContent": packed.structured,
            "isError": packed.is_error,
        },
        seconds=monotonic() - began,
        changes=result.meta.get(meta_keys.CHANGES),
        failure=failure,
        ended_process=any(
            isinstance(block, Text) and block.text.endswith(CopyEnded.ENDING)
            for block in result.content
        ),
        is_late=is_late,
    )


@asynccontextmanager
async def _connect(bridge: OwnBridge, era: Era, limit: float) -> AsyncIterator[McpClient]:
    headers = {"Authorization": f"Bearer {bridge.token}"}
    async with (
        open_http_client(headers=headers, timeout=limit + _MARGIN) as http,
        HttpTransport.open(http, bridge.url) as transport,
    ):
        client = McpClient(transport, _PROGRAM, _VERSIONS[era])
        await client.open()
        await client.list_tools()  # which says what headers repeat
        yield client


async def _call(
    client: McpClient, era: Era, tool: CheckedTool, arguments: Mapping[str, Any], limit: float
) -> Answer:
    began = monotonic()
    result: dict[str, Any] = {}
    failure, is_late = None, False
    try:
        with anyio.fail_after(limit):
            result = dict(await client.call_tool(tool.name, arguments))
    except TimeoutError:
        is_late = True
    except ProtocolError as error:
        failure = error.message.partition("\n")[0]
    return Answer(
        tool=tool.name,
        arguments=arguments,
        era=era,
        result=result,
        seconds=monotonic() - began,
        failure=failure,
        is_late=is_late,
    )
