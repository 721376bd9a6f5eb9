// The host of a view of MCP Apps (2026-01-26): JSON-RPC by postMessage with the page around it.
// `connectHost` returns `ask`, `read` for resources, and `ready`, which resolves to the host's
// capabilities; `on` has what is done for each notification.
"use strict";
const connectHost = (name, appCapabilities, on) => {
  const waiting = new Map();
  let nextId = 1, context = {}, can = {};
  const post = message => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const ask = (method, params = {}) => new Promise((resolve, reject) => {
    waiting.set(nextId, { resolve, reject });
    post({ id: nextId++, method, params });
  });
  const apply = change => {
    context = { ...context, ...change };
    const root = document.documentElement;
    if (context.theme) root.style.colorScheme = root.dataset.theme = context.theme;
    for (const [name, value] of Object.entries(context.styles?.variables ?? {}))
      if (name.startsWith("--") && value) root.style.setProperty(name, value);
    on.context?.(context);
  };
  const read = async uri => {
    if (can.serverResources) return (await ask("resources/read", { uri })).contents[0].text;
    if (!can.serverTools) throw new Error("This client shows only what was sent.");
    if (!uri.includes("?")) uri += "?whole";
    const result = await ask("tools/call", { name: "read_notebook_resource", arguments: { uri } });
    const text = result.content[0].text;
    if (result.isError) throw new Error(text);
    return text;
  };
  addEventListener("message", event => {
    if (event.source !== parent || event.data?.jsonrpc !== "2.0") return;
    const { id, method, params, result, error } = event.data;
    if (method === undefined) {
      const waiter = waiting.get(id);
      waiting.delete(id);
      if (error) waiter?.reject(new Error(error.message)); else waiter?.resolve(result);
    } else if (method === "ui/notifications/tool-input") {
      on.input(params.arguments ?? {});
    } else if (method === "ui/notifications/tool-result") {
      on.result(params);
    } else if (method === "ui/notifications/tool-cancelled") {
      on.cancelled();
    } else if (method === "ui/notifications/host-context-changed") apply(params);
    else if (method === "ui/resource-teardown" || method === "ping") post({ id, result: {} });
    else if (id !== undefined) post({ id, error: { code: -32601, message: "Method not found" } });
  });
  const ready = ask("ui/initialize", { protocolVersion: "2026-01-26",
    appInfo: { name, version: "1" }, appCapabilities }).then(answer => {
    can = answer.hostCapabilities ?? {};
    on.connected?.(can);
    apply(answer.hostContext ?? {});
    post({ method: "ui/notifications/initialized", params: {} });
    return can;
  });
  new ResizeObserver(() => {
    const { width, height } = document.documentElement.getBoundingClientRect();
    post({ method: "ui/notifications/size-changed",
      params: { width: Math.ceil(width), height: Math.ceil(height) } });
  }).observe(document.documentElement);
  return { ask, read, ready, apply };
};
