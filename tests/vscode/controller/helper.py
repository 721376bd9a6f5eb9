"""Runs one notebook's cells for the controller: a line of JSON for each, on stdin."""

import json
import signal
import sys
from typing import Any

from jupyter_client.manager import KernelManager

SHOWN = ("text/html", "text/plain")


def put(**message: Any) -> None:
    """Send the controller a line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run cells until stdin ends."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()

    def begin() -> None:
        client.wait_for_ready(60)
        # As Microsoft's extension does.
        client.execute_interactive(f"__vsc_ipynb_file__ = {sys.argv[1]!r}", silent=True)

    def restart(*_: object) -> None:
        manager.restart_kernel(now=True)
        begin()

    signal.signal(signal.SIGUSR1, restart)
    try:
        begin()
        for line in sys.stdin:
            cell = json.loads(line)
            run(client, cell)
    finally:
        manager.shutdown_kernel(now=True)


def run(client: Any, cell: dict[str, Any]) -> None:
    """Run a cell, and send what it shows."""
    content = {"code": cell["code"], "silent": False, "store_history": True, "allow_stdin": False}
    metadata = {"cellId": cell["cellId"]}
    message = client.session.msg("execute_request", content, metadata=metadata)
    request = message["header"]["msg_id"]
    client.shell_channel.send(message)
    while True:
        message = client.get_iopub_msg()
        if message["parent_header"].get("msg_id") != request:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            put(
                id=cell["id"],
                data={f"application/vnd.code.notebook.{content['name']}": content["text"]},
            )
        elif kind in ("display_data", "execute_result"):
            shown = content["data"].items()
            put(id=cell["id"], data={mime: value for mime, value in shown if mime in SHOWN})
        elif kind == "error":
            put(id=cell["id"], data={"text/plain": f"{content['ename']}: {content['evalue']}"})
        elif kind == "status" and content["execution_state"] == "idle":
            break
    reply = client.get_shell_msg()
    while reply["parent_header"].get("msg_id") != request:
        reply = client.get_shell_msg()
    put(id=cell["id"], ended=reply["content"]["status"] == "ok")


if __name__ == "__main__":
    main()
