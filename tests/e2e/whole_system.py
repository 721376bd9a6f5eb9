"""Two kernels, an HTTP bridge and five clients of both eras and transports, for `test_sequences`.

Runs in the test's thread; the clients live on the loop of a portal, in a thread of its own, and are
driven from outside. Every wait is for an event and bounded by `LIMIT`.
"""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal
from clients import ERAS, TOKEN, TRANSPORTS, connected, http_bridge, over_http
from desk import LIMIT, Desk
from forked_command import list_words
from listing import list_tools
from live import LiveKernel, kernel_env, live_kernel
from mcp import Client
from mcp_types import PaginatedRequestParams, Request, Result
from notebook_model import Kind, Listed

Listing = Mapping[str, tuple[Listed, ...]]
"""What a client sees, by the list."""
KINDS_OF_LISTS = {
    "tools": ("tools",),
    "prompts": ("prompts",),
    "resources": ("resources", "templates", "skills"),
}
"""The lists that one notice is about."""
ALLOWED = ("alpha", "alpha/SKILL.md")
"""The names that one of the clients may use."""
_NOTICES = {
    f"{kind}ListChangedNotification": f"{kind.lower()}s" for kind in ("Tool", "Prompt", "Resource")
}


class Skills(Result):
    """The answer to ``skills/list``."""

    skills: list[dict[str, Any]]


class Viewer:
    """A client that lists what there is when it is told that it changed, and only then.

    Belongs to the portal's loop.
    """

    def __init__(self, client: Client, era: str, notices: dict[str, anyio.Event]) -> None:
        self.client, self._era = client, era
        self._notices = notices
        self._news = anyio.Event()
        self.seen: dict[str, tuple[Listed, ...]] = {}
        """What it knows, by the list."""
        self.updated: set[str] = set()
        """The URIs of which it was told an update."""
        self._told = anyio.Event()
        self._subscriptions: dict[str, anyio.CancelScope] = {}

    async def list(self, notice: str) -> dict[str, tuple[Listed, ...]]:
        """Ask for the lists that a notice is about."""
        with anyio.fail_after(LIMIT):
            return {name: await self._list(name) for name in KINDS_OF_LISTS[notice]}

    async def _list(self, name: str) -> tuple[Listed, ...]:
        client = self.client
        if name == "tools":
            tools = await list_tools(client, cache_mode="bypass")
            return tuple(Listed(t.name, t.description or "", t.input_schema) for t in tools)
        if name == "prompts":
            prompts = (await client.list_prompts(cache_mode="bypass")).prompts
            return tuple(
                Listed(
                    p.name,
                    p.description or "",
                    {item.name: item.required for item in p.arguments or ()},
                )
                for p in prompts
            )
        if name == "resources":
            resources = (await client.list_resources(cache_mode="bypass")).resources
            return tuple(Listed(str(r.uri), r.description or "", r.name) for r in resources)
        if name == "templates":
            templates = await client.list_resource_templates(cache_mode="bypass")
            return tuple(
                Listed(t.uri_template, t.description or "", t.name)
                for t in templates.resource_templates
            )
        request = Request[PaginatedRequestParams, str](
            method="skills/list", params=PaginatedRequestParams()
        )
        skills = (await client.session.send_request(request, Skills)).skills
        return tuple(
            Listed(s["uri"], s["frontmatter"]["description"], s["frontmatter"]["name"])
            for s in skills
        )

    async def follow(self, notice: str) -> None:
        """List at each notice of a kind; runs for ever."""
        while True:
            self.seen |= await self.list(notice)
            self._news.set()
            self._news = anyio.Event()
            await self._notices[notice].wait()
            self._notices[notice] = anyio.Event()

    async def until(self, wanted: Listing) -> str:
        """Wait until it knows what is wanted, and is told the same when it asks.

        Where it is told something else, a notice must follow: a notebook that is loaded anew is
        away for a moment.

        Returns:
            What is wrong after all, "" for nothing.
        """
        problem = ""
        with anyio.move_on_after(LIMIT):
            while True:
                news = self._news
                if self.seen != wanted:
                    problem = f"was not told, and knows {_differ(self.seen, wanted)}"
                else:
                    listed: dict[str, tuple[Listed, ...]] = {}
                    for notice in KINDS_OF_LISTS:
                        listed |= await self.list(notice)
                    if listed == wanted:
                        return ""
                    problem = f"is told {_differ(listed, wanted)} when it asks"
                await news.wait()
        return problem

    # -- subscriptions -----------------------------------------------------------------------------

    def note_update(self, uri: str) -> None:
        """Note that a resource has changed, as the bridge says."""
        self.updated.add(uri)
        self._told.set()
        self._told = anyio.Event()

    async def subscribe(self, uri: str, tasks: TaskGroup) -> None:
        """Begin to be told of the changes of a resource."""
        if self._era == "legacy":
            await self.client.subscribe_resource(uri)
            return
        scope = self._subscriptions[uri] = anyio.CancelScope()
        await tasks.start(self._listen, uri, scope)

    async def _listen(
        self, uri: str, scope: anyio.CancelScope, *, task_status: TaskStatus[None]
    ) -> None:
        with scope:
            async with self.client.listen(resource_subscriptions=[uri]) as stream:
                task_status.started()
                async for event in stream:
                    self.note_update(str(event.uri))

    async def unsubscribe(self, uri: str) -> None:
        """End it."""
        if self._era == "legacy":
            await self.client.unsubscribe_resource(uri)
        else:
            self._subscriptions.pop(uri).cancel()

    async def until_told(self, uri: str) -> bool:
        """Wait until it is told that a resource has changed."""
        with anyio.move_on_after(LIMIT):
            while uri not in self.updated:
                await self._told.wait()
        return uri in self.updated


def _differ(seen: Listing, wanted: Listing) -> str:
    """Return the lists that are not as they should be."""
    return str({name: seen.get(name) for name in wanted if seen.get(name) != wanted[name]})


@asynccontextmanager
async def _viewer(connect: Callable[..., Any], era: str) -> AsyncIterator[tuple[Viewer, TaskGroup]]:
    notices = {name: anyio.Event() for name in KINDS_OF_LISTS}
    viewers: list[Viewer] = []

    async def handle(message: object) -> None:
        kind = type(message).__name__
        if kind in _NOTICES:
            notices[_NOTICES[kind]].set()
        elif kind == "ResourceUpdatedNotification" and era == "legacy":
            viewers[0].note_update(str(message.params.uri))  # type: ignore[attr-defined]

    async def watch(client: Client, name: str, *, task_status: TaskStatus[None]) -> None:
        async with client.listen(**{f"{name}_list_changed": True}) as stream:
            task_status.started()
            async for _ in stream:
                notices[name].set()

    async with (
        connect(message_handler=handle) as client,
        anyio.create_task_group() as tasks,
    ):
        viewers.append(Viewer(client, era, notices))
        for name in notices:
            if era != "legacy":
                await tasks.start(watch, client, name)
            tasks.start_soon(viewers[0].follow, name)
        yield viewers[0], tasks
        tasks.cancel_scope.cancel()


class Connection:
    """A client that can go and come back.

    Args:
        system: What it is part of.
        era: Of the protocol.
        transport: How it connects.
        allowed: The names that it may use; None: all.
    """

    def __init__(
        self, system: "System", era: str, transport: str, allowed: tuple[str, ...] | None = None
    ) -> None:
        self.era, self.transport, self.allowed = era, transport, allowed
        self._system = system
        self._context: AbstractContextManager[tuple[Viewer, TaskGroup]] | None = None
        self.viewer: Viewer
        self._tasks: TaskGroup
        self.subscriptions: set[str] = set()

    def __str__(self) -> str:
        return f"{self.era}/{self.transport}" + ("" if self.allowed is None else "/allowed")

    def open(self) -> None:
        """Connect, over stdio to a bridge of its own."""
        token = TOKEN if self.allowed is None else self._system.token
        connect = (
            partial(over_http, self._system.url, self.era, token=token)
            if self.transport == "http"
            else partial(connected, self._system.home, self.era, "stdio")
        )
        self._context = self._system.portal.wrap_async_context_manager(_viewer(connect, self.era))
        self.viewer, self._tasks = self._context.__enter__()

    def close(self) -> None:
        """Go."""
        if self._context is not None:
            context, self._context = self._context, None
            self.subscriptions.clear()
            context.__exit__(None, None, None)

    def call(self, kind: Kind, name: str, arguments: dict[str, Any]) -> "Future[Any]":
        """Start a call of a tool, a prompt (by its name) or a resource (by its URI)."""
        client, start = self.viewer.client, self._system.portal.start_task_soon
        if kind == "tool":
            return start(client.call_tool, name, arguments)
        if kind == "prompt":
            return start(client.get_prompt, name, arguments)
        return start(partial(client.read_resource, cache_mode="bypass"), name)

    def complete(self, reference: Any, name: str, value: str) -> "Future[Any]":
        """Complete an argument."""
        argument = {"name": name, "value": value}
        return self._system.portal.start_task_soon(self.viewer.client.complete, reference, argument)

    def subscribe(self, uri: str) -> None:
        """Begin to be told of the changes of a resource."""
        self._system.portal.call(self.viewer.subscribe, uri, self._tasks)
        self.subscriptions.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """End it."""
        self._system.portal.call(self.viewer.unsubscribe, uri)
        self.subscriptions.discard(uri)


class System:
    """All of it. Made by `running`."""

    def __init__(
        self, home: Path, portal: BlockingPortal, url: str, desk: Desk, token: str
    ) -> None:
        self.home, self.portal, self.url, self.desk = home, portal, url, desk
        self.token = token
        """That of the client that may use only some names."""
        self.kernels: list[LiveKernel] = []
        self.oldest_first: list[LiveKernel] = []
        """The same, in the order in which their processes were started."""
        self.connections = [
            Connection(self, era, transport) for era in ERAS for transport in TRANSPORTS
        ]
        self.connections.append(Connection(self, "auto", "http", ALLOWED))

    def shows(self, checks: dict[Connection, Listing]) -> str:
        """Wait until all clients know what they should; return what is wrong after all."""

        async def wait() -> str:
            problems: list[str] = []

            async def one(connection: Connection, check: Listing) -> None:
                if problem := await connection.viewer.until(check):
                    problems.append(f"{connection} {problem}")

            async with anyio.create_task_group() as tasks:
                for connection, check in checks.items():
                    tasks.start_soon(one, connection, check)
            return "\n".join(problems)

        return self.portal.call(wait)

    def leave(self, kernel: LiveKernel, *, kill: bool) -> None:
        """End a kernel's process: kill it, or as frontends do for a restart."""
        if kill:
            os.kill(kernel.pid, signal.SIGKILL)
        else:
            kernel.manager.interrupt_kernel()
            kernel.manager.request_shutdown(restart=True)
            kernel.manager.finish_shutdown(restart=True)

    def start_again(self, kernel: LiveKernel) -> None:
        """Start a kernel's process that has been left."""
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=LIMIT)
        self.oldest_first.remove(kernel)
        self.oldest_first.append(kernel)


@contextmanager
def running(home: Path) -> Iterator[System]:
    """Start everything in an empty folder, and end it."""
    with ExitStack() as stack:
        desk = Desk(home)
        stack.callback(desk.close)
        portal = stack.enter_context(start_blocking_portal())
        served = stack.enter_context(http_bridge(home))
        system = System(home, portal, served.url, desk, _add_token(home))
        for notebook in ("sales", "stock"):
            path = str(home / f"{notebook}.ipynb")
            system.kernels.append(stack.enter_context(live_kernel(home, notebook=path)))
        system.oldest_first = list(system.kernels)
        for connection in system.connections:
            stack.callback(connection.close)
            connection.open()
        yield system


def _add_token(home: Path) -> str:
    """Return a new token for the names of `ALLOWED`."""
    command = list_words("token", "add", "reader", "--tools", ",".join(ALLOWED))
    added = subprocess.run(
        command, env=kernel_env(home), capture_output=True, text=True, check=True, timeout=LIMIT
    )
    return added.stdout.strip()
