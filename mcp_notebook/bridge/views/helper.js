// `notebook`, for the author's page of a tool: a view of MCP Apps (2026-01-26).
window.notebook = (() => {
  const served = {/* served names */}, listeners = [];
  let input = {}, latest;
  const read = result => ({ ...result, data: result._meta?.["io.github.mcp-notebook/data"],
    text: (result.content ?? []).filter(block => block.type === "text")
      .map(block => block.text).join("\n") });
  const show = result => {
    latest = { ...read(result), arguments: input };
    for (const listener of listeners) listener(latest);
  };
  const on = {
    input(given) { input = given; },
    result: show,
    cancelled() {
      show({ isError: true, content: [{ type: "text", text: "The call was cancelled." }] });
    },
  };
  const { ask, ready } = connectHost("mcp-notebook", {}, on);
  return {
    onresult(listener) {
      listeners.push(listener);
      if (latest) listener(latest);
    },
    async call(tool, args = {}) {
      if (!(await ready).serverTools) throw new Error("This client does not let views call tools.");
      const result = read(await ask("tools/call", { name: served[tool] ?? tool, arguments: args,
        _meta: { "io.github.mcp-notebook/view": true } }));
      if (result.isError) throw new Error(result.text);
      return result;
    },
    async send(text) {
      const content = [{ type: "text", text: String(text) }];
      if ((await ready).updateModelContext) await ask("ui/update-model-context", { content });
      else await ask("ui/message", { role: "user", content });
    },
  };
})();
