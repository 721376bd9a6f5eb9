// A host of live views, as a chat program is one: it shows a page in a sandboxed frame that may load
// nothing, and passes on what the page asks. `window.ask` sends a request to the MCP server.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

window.seen = { contexts: [], downloads: [], asked: [] };

window.openView = async ({ html, input, result, capabilities, context }) => {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = "border: 0; width: 100%; height: 300px";
  document.body.append(frame);
  const bridge = new AppBridge(null, { name: "test", version: "1" }, capabilities, {
    hostContext: context,
  });
  const pass = method => async params => {
    window.seen.asked.push({ method, params });
    return await window.ask(method, params);
  };
  if (capabilities.serverResources) bridge.onreadresource = pass("resources/read");
  if (capabilities.serverTools) bridge.oncalltool = pass("tools/call");
  bridge.onupdatemodelcontext = async params => {
    window.seen.contexts.push(params);
    return {};
  };
  bridge.ondownloadfile = async params => {
    window.seen.downloads.push(params);
    return {};
  };
  bridge.onrequestdisplaymode = async ({ mode }) => ({ mode });
  bridge.onsizechange = ({ height }) => {
    if (height) frame.style.height = `${height}px`;
  };
  const ready = new Promise(resolve => {
    bridge.oninitialized = resolve;
  });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html.replace(
    /<meta charset[^>]*>/,
    found => `${found}<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
  );
  await ready;
  await bridge.sendToolInput({ arguments: input });
  window.bridge = bridge;
  if (result) await bridge.sendToolResult(result);
};
