"""Codex as editors run it: ``codex app-server`` over stdio, and a user who answers."""

import itertools
import json
import queue
import subprocess
import threading
from typing import Any

from stand_in import PATIENCE

_INITIALIZE = {"clientInfo": {"name": "tests", "version": "1"}}


class CodexApp:
    """The user's end of an app server that runs: starts conversations, and accepts what is asked.

    Its thread reads what Codex writes, and answers its requests.

    Args:
        process: The app server, with pipes.
        answer: What the user enters in a form.
    """

    def __init__(self, process: subprocess.Popen[str], answer: dict[str, Any]) -> None:
        self._process = process
        self._answer = answer
        self._ids = itertools.count(1)
        self._replies: queue.Queue[dict[str, Any]] = queue.Queue()
        self.notices: list[dict[str, Any]] = []
        """What Codex has said by itself."""
        self.questions: list[dict[str, Any]] = []
        """The forms that Codex has shown."""
        self._thread = ""
        """The id of the conversation."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.request("initialize", _INITIALIZE)

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return its result."""
        id_ = next(self._ids)
        self._send({"id": id_, "method": method, "params": params})
        reply = self._replies.get(timeout=PATIENCE)
        assert reply["id"] == id_, reply
        assert "result" in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def say(self, text: str) -> None:
        """Begin the conversation."""
        self._thread = self.request("thread/start", {})["thread"]["id"]
        said = [{"type": "text", "text": text, "text_elements": []}]
        self.request("turn/start", {"threadId": self._thread, "input": said})

    def list_servers(self) -> dict[str, Any]:
        """Return what Codex says of the servers of the conversation."""
        return self.request("mcpServerStatus/list", {"threadId": self._thread})

    def close(self) -> None:
        """End the app server, as its editor does."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self._replies.put(message)
            elif "id" not in message:
                self.notices.append(message)
            else:
                self.questions.append(message)
                fields = message["params"]["requestedSchema"]["properties"]
                content = {name: self._answer[name] for name in fields}
                self._send(
                    {"id": message["id"], "result": {"action": "accept", "content": content}}
                )
