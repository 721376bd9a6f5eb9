"""The assistants: how each is set up and started, so that its model is the stand-in."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_apis import ChatApi, GenerateContentApi, MessagesApi, ModelApi, ResponsesApi

QUESTION = "Go"
ANSWER = {"value": "remove"}
"""What the user enters when a tool asks."""
_KEY = "any"
_MODEL = "stand-in"


@dataclass(frozen=True, kw_only=True)
class Assistant:
    """A program that people talk to, which takes its tools from MCP servers."""

    program: str
    """What Node runs, or a program of its own for a platform, within ``node_modules``."""
    api: Callable[[], ModelApi]
    """How it speaks to its model."""
    arguments: Sequence[str]
    """Those that begin a conversation; for an app server, those that start it."""
    is_app: bool = False
    """Whether an editor would drive it: see `codex_app`."""
    listing: Sequence[str] = ()
    """Arguments with which it says which servers are connected, if it can."""
    connected: str = ""
    """What it says of a server that is connected."""
    client: str = ""
    """What `mcp-notebook install` calls it; without, `write_server` writes the settings."""
    tool: str
    """What it calls a tool of the server ``notebook``, with a ``{}``."""
    search: str = ""
    """The tool with which its model looks for other tools, if it does not get all at once."""
    reader: str = ""
    """The tool with which its model reads a resource."""
    reader_arguments: Mapping[str, str] = field(default_factory=lambda: {"server": "notebook"})
    """The arguments of that tool, besides the address."""
    lister: str = ""
    """The tool with which its model lists resources."""
    template_lister: str = ""
    """The tool with which its model lists templates of resources."""
    prompt: Sequence[str] = ()
    """What its user writes to begin with a prompt, in the place of `QUESTION`: with ``{name}``, and
    ``{value}`` for its argument."""
    mention: str = ""
    """What its user writes to add a resource to a message, with a ``{}``."""
    write_settings: Callable[[Path, str], object] | None = None
    """Writes what is not ours, from the home folder and the address of the stand-in."""
    env: Mapping[str, str]
    """Its variables, with ``{url}`` for the address of the stand-in."""
    write_server: Callable[[Path, dict[str, Any]], object] | None = None
    """Writes the server, from the entry that most clients understand."""
    refused: Sequence[str] = ()
    """Addresses that it looks for however it is set up, and does without."""


def write_json(path: Path, settings: Mapping[str, Any]) -> None:
    """Add settings to a file in JSON, which is YAML as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(before | settings, indent=2), "utf-8")


def _set_up_claude(home: Path, url: str) -> None:
    answer = {"hookEventName": "Elicitation", "action": "accept", "content": ANSWER}
    (home / "answer.json").write_text(json.dumps({"hookSpecificOutput": answer}), "utf-8")
    # Without a screen, a hook answers in the place of the user.
    hook = {"type": "command", "command": f"cat {home / 'answer.json'}"}
    settings = {
        "hooks": {"Elicitation": [{"hooks": [hook]}]},
        "enableAllProjectMcpServers": True,  # what it asks the user before the first start
    }
    write_json(home / ".claude" / "settings.json", settings)


def _set_up_codex(home: Path, url: str) -> None:
    settings = f"""
model = "{_MODEL}"
model_provider = "local"
approval_policy = "on-request"
check_for_update_on_startup = false
mcp_optional_startup_grace_ms = 60000

[analytics]
enabled = false

[model_providers.local]
name = "local"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
"""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(settings, "utf-8")


def _set_up_gemini(home: Path, url: str) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    write_json(home / ".gemini" / "settings.json", settings)


def _set_up_qwen(home: Path, url: str) -> None:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
    }
    write_json(home / ".qwen" / "settings.json", settings)


def _set_up_opencode(home: Path, url: str) -> None:
    model = {
        "attachment": True,
        "tool_call": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": _KEY},
        "models": {_MODEL: model},
    }
    settings = {
        "provider": {"local": provider},
        "model": f"local/{_MODEL}",
        "autoupdate": False,
        "share": "disabled",
    }
    write_json(home / ".config" / "opencode" / "opencode.json", settings)


def _set_up_continue(home: Path, url: str) -> None:
    settings = f"""# The models of these tests
name: tests
version: 1.0.0
schema: v1
models:
  - name: {_MODEL}
    provider: openai
    model: {_MODEL}
    apiBase: {url}/v1
    apiKey: {_KEY}
    roles: [chat]
    capabilities: [tool_use, image_input]
"""
    (home / ".continue").mkdir()
    (home / ".continue" / "config.yaml").write_text(settings, "utf-8")


def _add_to_continue(home: Path, entry: dict[str, Any]) -> None:
    args = [*entry["args"], "--meta-tools"]  # it ignores that a list has changed
    servers = [{"name": "notebook", "type": "stdio", **entry, "args": args}]
    with (home / ".continue" / "config.yaml").open("a", encoding="utf-8") as file:
        file.write(f"mcpServers: {json.dumps(servers)}\n")  # JSON is YAML


def _add_to_opencode(home: Path, entry: dict[str, Any]) -> None:
    server = {"type": "local", "command": [entry["command"], *entry["args"]], "enabled": True}
    write_json(home / ".config" / "opencode" / "opencode.json", {"mcp": {"notebook": server}})


def _add_to_copilot(home: Path, entry: dict[str, Any]) -> None:
    server = {"type": "local", "tools": ["*"]} | entry
    write_json(home / ".copilot" / "mcp-config.json", {"mcpServers": {"notebook": server}})


def _add_to_qwen(home: Path, entry: dict[str, Any]) -> None:
    server = entry | {"args": [*entry["args"], "--meta-tools"]}
    write_json(home / ".qwen" / "settings.json", {"mcpServers": {"notebook": server}})


ASSISTANTS: Mapping[str, Assistant] = {
    "Claude Code": Assistant(
        program="@anthropic-ai/claude-code-{platform}/claude",
        api=MessagesApi,
        arguments=[
            *("-p", QUESTION, "--output-format", "stream-json", "--verbose", "--allowedTools"),
            "mcp__notebook,ToolSearch,ListMcpResourcesTool,ReadMcpResourceTool",
        ],
        listing=("mcp", "list"),
        connected="Connected",
        client="claude-code",
        tool="mcp__notebook__{}",
        search="ToolSearch",
        reader="ReadMcpResourceTool",
        lister="ListMcpResourcesTool",
        prompt=["/mcp__notebook__{name} {value}"],
        write_settings=_set_up_claude,
        env={
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": _KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # Without a screen, it takes no command of a server that has not started by then.
            "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "60000",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    "Codex CLI": Assistant(
        program="@openai/codex/bin/codex.js",
        api=ResponsesApi,
        arguments=["app-server"],
        is_app=True,
        client="codex",
        tool="mcp__notebook/{}",
        connected='"runtimeStatus": "connected"',
        reader="read_mcp_resource",
        lister="list_mcp_resources",
        template_lister="list_mcp_resource_templates",
        write_settings=_set_up_codex,
        env={"MODEL_KEY": _KEY},
        # For plugins, and for a newer version of itself.
        refused=["api.github.com:443", "chatgpt.com:443", "github.com:443"],
    ),
    "Gemini CLI": Assistant(
        program="@google/gemini-cli/bundle/gemini.js",
        api=GenerateContentApi,
        arguments=["-m", "gemini-2.5-pro", "-y", "-p", QUESTION],
        listing=("mcp", "list"),
        connected="Connected",
        client="gemini",
        tool="mcp_notebook_{}",
        reader="read_mcp_resource",
        reader_arguments={},
        lister="list_mcp_resources",
        prompt=["/{name} {value}"],
        mention="@notebook:{}",
        write_settings=_set_up_gemini,
        env={
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_API_KEY": _KEY,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    "GitHub Copilot CLI": Assistant(
        program="@github/copilot-{platform}/copilot",
        api=ResponsesApi,
        arguments=["-p", QUESTION, "--allow-all-tools"],
        tool="notebook-{}",
        env={
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_API_KEY": _KEY,
            "COPILOT_PROVIDER_WIRE_API": "responses",
            "COPILOT_MODEL": "gpt-5.4",
            "COPILOT_OFFLINE": "true",
        },
        write_server=_add_to_copilot,
    ),
    "Qwen Code": Assistant(
        program="@qwen-code/qwen-code/cli-entry.js",
        api=ChatApi,
        arguments=["-y", "-p", QUESTION],
        listing=("mcp", "list"),
        connected="Connected",
        tool="mcp__notebook__{}",
        search="tool_search",
        reader="read_mcp_resource",
        reader_arguments={"server_name": "notebook"},
        prompt=["/{name} {value}"],
        mention="@notebook:{}",
        write_settings=_set_up_qwen,
        env={
            "OPENAI_BASE_URL": "{url}/v1",
            "OPENAI_API_KEY": _KEY,
            # By its name, it knows that this model takes pictures.
            "OPENAI_MODEL": "qwen3-vl-plus",
        },
        write_server=_add_to_qwen,
    ),
    "opencode": Assistant(
        program="opencode-{platform}/bin/opencode",
        api=ChatApi,
        arguments=["run", QUESTION],
        listing=("mcp", "list"),
        connected="connected",
        tool="notebook_{}",
        reader="read_mcp_resource",
        lister="list_mcp_resources",
        template_lister="list_mcp_resource_templates",
        prompt=["--command", "notebook:{name}", "{value}"],
        mention="@notebook:{}",
        write_settings=_set_up_opencode,
        env={
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        write_server=_add_to_opencode,
        # For what its plugins may import.
        refused=["registry.npmjs.org:443"],
    ),
    "Continue CLI": Assistant(
        program="@continuedev/cli/dist/cn.js",
        api=ChatApi,
        arguments=["--auto", "-p", QUESTION],
        tool="{}",
        write_settings=_set_up_continue,
        write_server=_add_to_continue,
        env={"CONTINUE_TELEMETRY_ENABLED": "0"},
    ),
}
"""By the names that people know."""
