// Calls a tool with MCP's TypeScript client and its extension for tasks, and prints what happens,
// one JSON object on a line: the task, if the call becomes one, and the result.
//
//   node tasks_client.mjs MODULES URL TOKEN call TOOL ARGUMENTS
//   node tasks_client.mjs MODULES URL TOKEN resume TASK

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, url, token, verb, name, parameters] = process.argv.slice(2);
const load = (...path) =>
  import(pathToFileURL(join(modules, "@modelcontextprotocol", ...path)).href);
const { Client, StreamableHTTPClientTransport } = await load("client", "dist", "index.mjs");
const { createTaskSessionFromClient, resultFromTaskOutcome } = await load(
  "ext-tasks", "dist", "client", "index.js",
);

const say = (what) => console.log(JSON.stringify(what));
const protocolVersion = "2026-07-28";
const clientInfo = { name: "tasks-client", version: "1" };
const clientCapabilities = {
  elicitation: {},
  extensions: { "io.modelcontextprotocol/tasks": {} },
};
let last = 0;

// The client itself cannot send such requests: the extension asks its host for a way.
async function rawDispatch(request, options = {}) {
  const headers = new Headers(options.context?.headers);
  headers.set("authorization", `Bearer ${token}`);
  headers.set("accept", "application/json, text/event-stream");
  headers.set("content-type", "application/json");
  headers.set("mcp-protocol-version", protocolVersion);
  headers.set("mcp-method", request.method);
  headers.set("mcp-name", request.params.taskId ?? request.params.name);
  const response = await fetch(url, {
    method: "POST",
    signal: options.signal,
    headers,
    body: JSON.stringify({ jsonrpc: "2.0", id: `raw-${++last}`, ...request }),
  });
  const text = await response.text();
  const data = text.match(/^data: (\{.*"(?:result|error)":.*)$/m);
  const answer = JSON.parse(data ? data[1] : text);
  return answer.error
    ? { kind: "error", error: answer.error }
    : { kind: "result", result: answer.result };
}

const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: "auto" },
});
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  }),
);
const endpointId = "notebook";
const session = createTaskSessionFromClient(client, {
  endpointId,
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async (request) => {
    say({ asked: request.params.message });
    return { action: "accept", content: { value: "Ann" } };
  },
});
const execution =
  verb === "call"
    ? await session.callTool(name, JSON.parse(parameters))
    : await session.resumeTask({
        endpointId, generation: "v2", taskId: name, originalOperation: "tools/call",
      });
say({ task: execution.handle?.taskId ?? null });
const { outcome } = await execution.settle();
say({ result: resultFromTaskOutcome(outcome) });
await session.close();
await client.close();
