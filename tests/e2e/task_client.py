"""A client of MCP's tasks, made with the official client's extensions."""

from typing import Any, ClassVar, Literal

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult
from pydantic import TypeAdapter

EXTENSION = "io.modelcontextprotocol/tasks"
TERMINAL = ("completed", "failed", "cancelled")
_ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class Created(types.Result):
    """A call that has become a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None


class TaskRequest(types.Request[dict[str, Any], str]):
    """A request about a task."""

    name_param: ClassVar[str | None] = "taskId"
    method: str
    params: dict[str, Any]


class TasksExtension(ClientExtension):
    """Follows tasks to their results, as somebody would who calls a tool and waits."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.created: list[Created] = []
        self.has_task = anyio.Event()
        """Set when a call has become a task."""

    def claims(self) -> list[ResultClaim[Any]]:
        """Take tasks in place of results."""
        return [ResultClaim(result_type="task", model=Created, resolve=self._resolve)]

    async def _resolve(self, task: Created, context: ClaimContext) -> CallToolResult:
        self.created.append(task)
        self.has_task.set()
        while True:
            state = await _send(context.session, "tasks/get", task.task_id)
            if state["status"] in TERMINAL:
                return CallToolResult.model_validate(state["result"])
            await anyio.sleep(0.05)


async def start_task(client: Client, tool: str, **arguments: Any) -> Created:
    """Call a tool, and return the task that the call becomes."""
    created = await client.session.call_tool(tool, arguments, allow_claimed=True)
    assert isinstance(created, Created), created
    return created


async def ask_task(client: Client, method: str, task_id: str, **params: Any) -> dict[str, Any]:
    """Send a request about a task, such as ``tasks/get``."""
    return await _send(client.session, method, task_id, **params)


async def wait_for_status(client: Client, task_id: str, *statuses: str) -> dict[str, Any]:
    """Return a task once it has one of these statuses."""
    while True:
        task = await ask_task(client, "tasks/get", task_id)
        if task["status"] in statuses:
            return task
        assert task["status"] not in TERMINAL, task
        await anyio.sleep(0.02)


async def _send(session: Any, method: str, task_id: str, **params: Any) -> dict[str, Any]:
    request = TaskRequest(method=method, params={"taskId": task_id, **params})
    return await session.send_request(request, _ANY)
