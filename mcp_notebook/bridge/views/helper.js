// `notebook`, for the author's page of a tool: a view of MCP Apps (2026-01-26).
"use strict";
window.notebook = (() => {
  const served = {/* served names */}, waiting = new Map(), listeners = [];
  let nextId = 1, host = {}, context = {}, input = {}, latest;
  const post = message => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const ask = (method, params = {}) => new Promise((resolve, reject) => {
    waiting.set(nextId, { resolve, reject });
    post({ id: nextId++, method, params });
  });
  const read = result => ({ ...result, data: result.structuredContent, text: (result.content ?? [])
    .filter(block => block.type === "text").map(block => block.text).join("\n") });
  const show = result => {
    latest = { ...read(result), arguments: input };
    for (const listener of listeners) listener(latest);
  };
  const apply = change => {
    context = { ...context, ...change };
    const root = document.documentElement;
    if (context.theme) root.style.colorScheme = root.dataset.theme = context.theme;
    for (const [name, value] of Object.entries(context.styles?.variables ?? {}))
      if (name.startsWith("--") && value) root.style.setProperty(name, value);
  };
  addEventListener("message", event => {
    if (event.source !== parent || event.data?.jsonrpc !== "2.0") return;
    const { id, method, params, result, error } = event.data;
    if (method === undefined) {
      const waiter = waiting.get(id);
      waiting.delete(id);
      if (error) waiter?.reject(new Error(error.message)); else waiter?.resolve(result);
    } else if (method === "ui/notifications/tool-input") input = params.arguments ?? {};
    else if (method === "ui/notifications/tool-result") show(params);
    else if (method === "ui/notifications/tool-cancelled")
      show({ isError: true, content: [{ type: "text", text: "The call was cancelled." }] });
    else if (method === "ui/notifications/host-context-changed") apply(params);
    else if (method === "ui/resource-teardown" || method === "ping") post({ id, result: {} });
    else if (id !== undefined) post({ id, error: { code: -32601, message: "Method not found" } });
  });
  const ready = ask("ui/initialize", { protocolVersion: "2026-01-26",
    appInfo: { name: "mcp-notebook", version: "1" }, appCapabilities: {} }).then(answer => {
    host = answer.hostCapabilities ?? {};
    apply(answer.hostContext ?? {});
    post({ method: "ui/notifications/initialized", params: {} });
  });
  new ResizeObserver(() => {
    const { width, height } = document.documentElement.getBoundingClientRect();
    post({ method: "ui/notifications/size-changed",
      params: { width: Math.ceil(width), height: Math.ceil(height) } });
  }).observe(document.documentElement);
  return {
    onresult(listener) {
      listeners.push(listener);
      if (latest) listener(latest);
    },
    async call(tool, args = {}) {
      await ready;
      if (!host.serverTools) throw new Error("This client does not let views call tools.");
      const result = read(await ask("tools/call", { name: served[tool] ?? tool, arguments: args,
        _meta: { "io.github.mcp-notebook/view": true } }));
      if (result.isError) throw new Error(result.text);
      return result;
    },
    async send(text) {
      await ready;
      const content = [{ type: "text", text: String(text) }];
      if (host.updateModelContext) await ask("ui/update-model-context", { content });
      else await ask("ui/message", { role: "user", content });
    },
  };
})();
