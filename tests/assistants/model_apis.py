"""The APIs of models, as far as an assistant needs them: which tools it offers, what it brings.

Each reads the requests of one API, and writes its answers: a call of a tool, or a text that ends
the conversation.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

END = "All done."
"""What the stand-in says when it asks for no more tools, unless it is told what to say."""
_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,(.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A tool that the model asks for, by the name that the assistant gave it."""

    name: str
    arguments: dict[str, Any]
    number: int
    """Makes the ids of the calls of a conversation differ."""


@dataclass
class Received:
    """What a model got of one call."""

    text: str = ""
    pictures: list[tuple[str, bytes]] = field(default_factory=list)
    """Media type and data."""
    is_error: bool = False
    """Whether the API has a mark for it, and it is set."""

    def add_text(self, text: str) -> None:
        """Add a line or more."""
        self.text += f"{text}\n"

    def add_picture(self, kind: str, data: str) -> None:
        """Add a picture in base64."""
        self.pictures.append((kind, base64.b64decode(data)))

    def add_url(self, url: str) -> None:
        """Add a picture that is a ``data:`` URL."""
        found = _DATA_URL.fullmatch(url)
        assert found, url[:80]
        self.add_picture(found[1], found[2])


class MessagesApi:
    """Anthropic's ``/v1/messages``."""

    def is_turn(self, path: str, body: dict[str, Any]) -> bool:
        """Tell whether a request belongs to the conversation: not one for its title, say."""
        return path.partition("?")[0].endswith("/messages") and bool(body.get("tools"))

    def read_tools(self, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the tools that a request offers, by name."""
        return {tool["name"]: tool for tool in body["tools"] if "name" in tool}

    def read_result(self, body: dict[str, Any]) -> Received:
        """Return what the newest call gave."""
        received = Received()
        contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
        results = [b for content in contents for b in content if b["type"] == "tool_result"]
        received.is_error = bool(results[-1].get("is_error"))
        content = results[-1]["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                received.add_text(block["text"])
            elif block["type"] == "image":
                received.add_picture(block["source"]["media_type"], block["source"]["data"])
        return received

    def write(self, body: dict[str, Any], call: Call | str) -> tuple[str, str]:
        """Return the media type and the text of an answer: a call, or the last words."""
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "m"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if isinstance(call, str):
            block: dict[str, Any] = {"type": "text", "text": call}
            start, stop = block | {"text": ""}, "end_turn"
            delta = {"type": "text_delta", "text": call}
        else:
            id_ = f"toolu_{call.number:03d}"
            block = {"type": "tool_use", "id": id_, "name": call.name, "input": call.arguments}
            start, stop = block | {"input": {}}, "tool_use"
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        if not body.get("stream"):
            return "application/json", json.dumps(
                message | {"content": [block], "stop_reason": stop}
            )
        ended = {"stop_reason": stop, "stop_sequence": None}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return "text/event-stream", _write_events(events)


class ResponsesApi:
    """OpenAI's ``/responses``, whose tools may be in namespaces: then their names are `a/b`."""

    def is_turn(self, path: str, body: dict[str, Any]) -> bool:
        """Tell whether a request belongs to the conversation."""
        return path.endswith("/responses") and bool(body.get("tools"))

    def read_tools(self, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the tools that a request offers, by name."""
        return dict(self._iterate_tools(body["tools"]))

    def _iterate_tools(self, tools: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
        for tool in tools:
            if tool["type"] == "namespace":
                for inner in tool["tools"]:
                    yield f"{tool['name']}/{inner['name']}", inner
            else:
                yield tool.get("name", tool["type"]), tool

    def read_result(self, body: dict[str, Any]) -> Received:
        """Return what the newest call gave."""
        received = Received()
        outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
        output = outputs[-1]["output"]
        for item in [{"type": "input_text", "text": output}] if isinstance(output, str) else output:
            if item["type"] == "input_text":
                received.add_text(item["text"])
            elif item["type"] == "input_image":
                received.add_url(item["image_url"])
        return received

    def write(self, _: dict[str, Any], call: Call | str) -> tuple[str, str]:
        """Return the media type and the text of an answer: a call, or the last words."""
        item: dict[str, Any]
        if isinstance(call, str):
            content = {"type": "output_text", "text": call, "annotations": []}
            item = {"type": "message", "id": "m1", "role": "assistant", "content": [content]}
        else:
            namespace, _, name = call.name.rpartition("/")
            item = {
                "type": "function_call",
                "id": f"fc_{call.number}",
                "call_id": f"call_{call.number}",
                "name": name,
                "arguments": json.dumps(call.arguments),
            }
            if namespace:
                item["namespace"] = namespace
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {
            "id": f"resp_{0 if isinstance(call, str) else call.number}",
            "output": [item],
            "usage": usage,
        }
        return "text/event-stream", _write_events(
            [
                {"type": "response.created", "response": {"id": response["id"]}},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response},
            ]
        )


class GenerateContentApi:
    """Google's ``:streamGenerateContent``."""

    def is_turn(self, path: str, body: dict[str, Any]) -> bool:
        """Tell whether a request belongs to the conversation."""
        return "streamGenerateContent" in path and bool(self.read_tools(body))

    def read_tools(self, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the tools that a request offers, by name."""
        groups = body.get("tools", [])
        return {f["name"]: f for group in groups for f in group.get("functionDeclarations", [])}

    def read_result(self, body: dict[str, Any]) -> Received:
        """Return what the newest call gave."""
        received = Received()
        for part in body["contents"][-1]["parts"]:
            self._read_part(part, received)
        return received

    def _read_part(self, part: dict[str, Any], received: Received) -> None:
        if "functionResponse" in part:
            response = part["functionResponse"]
            for key, value in response["response"].items():
                received.is_error = received.is_error or key == "error"
                received.add_text(value if isinstance(value, str) else json.dumps(value))
            for inner in response.get("parts", []):
                self._read_part(inner, received)
        elif "inlineData" in part:
            received.add_picture(part["inlineData"]["mimeType"], part["inlineData"]["data"])
        elif "text" in part:
            received.add_text(part["text"])

    def write(self, body: dict[str, Any], call: Call | str) -> tuple[str, str]:
        """Return the media type and the text of an answer: a call, or the last words."""
        part: dict[str, Any]
        if isinstance(call, Call):
            part = {"functionCall": {"name": call.name, "args": call.arguments}}
        elif "json" in body.get("generationConfig", {}).get("responseMimeType", ""):
            part = {"text": "{}"}
        else:
            part = {"text": call}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
        }
        return "text/event-stream", f"data: {json.dumps(answer)}\r\n\r\n"


class ChatApi:
    """OpenAI's ``/chat/completions``, which others offer as well."""

    def is_turn(self, path: str, body: dict[str, Any]) -> bool:
        """Tell whether a request belongs to the conversation."""
        return path.endswith("/chat/completions") and bool(body.get("tools"))

    def read_tools(self, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the tools that a request offers, by name."""
        return {tool["function"]["name"]: tool["function"] for tool in body["tools"]}

    def read_result(self, body: dict[str, Any]) -> Received:
        """Return what the newest call gave: its message, and pictures in one after it."""
        received = Received()
        messages = body["messages"]
        tools = [i for i, message in enumerate(messages) if message["role"] == "tool"]
        last = max(tools, default=len(messages) - 1)  # some say it in the role of the user
        for message in messages[last:]:
            content = message["content"]
            for part in (
                [{"type": "text", "text": content}] if isinstance(content, str) else content
            ):
                if part["type"] == "text":
                    received.add_text(part["text"])
                elif part["type"] == "image_url":
                    received.add_url(part["image_url"]["url"])
        return received

    def write(self, body: dict[str, Any], call: Call | str) -> tuple[str, str]:
        """Return the media type and the text of an answer: a call, or the last words."""
        message: dict[str, Any] = {"role": "assistant", "content": call}
        if isinstance(call, Call):
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            id_ = f"call_{call.number}"
            calls = [{"index": 0, "id": id_, "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        reason = "stop" if isinstance(call, str) else "tool_calls"
        common = {"id": "chat_1", "created": 1, "model": body.get("model", "m")}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            answer = {"object": "chat.completion", "choices": [choice], "usage": usage}
            return "application/json", json.dumps(common | answer)
        chunk = common | {"object": "chat.completion.chunk"}
        first = {"index": 0, "delta": message, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        events = [
            chunk | {"choices": [first]},
            chunk | {"choices": [last], "usage": usage},
        ]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return "text/event-stream", f"{text}data: [DONE]\n\n"


ModelApi = MessagesApi | ResponsesApi | GenerateContentApi | ChatApi


def _write_events(events: list[dict[str, Any]]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
