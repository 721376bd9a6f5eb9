// Gets prompts, resources and skills with MCP's TypeScript SDKs, and prints what it is told: one JSON
// object on a line, with the last one when a subscribed resource has changed.
//
//   node kinds_client.mjs MODULES sdk|client ERA URL TOKEN

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, sdk, era, url, token] = process.argv.slice(2);
const load = (...path) =>
  import(pathToFileURL(join(modules, "@modelcontextprotocol", ...path)).href);

const v1 = sdk === "sdk";
const { Client, StreamableHTTPClientTransport } = v1
  ? {
      ...(await load("sdk", "dist", "esm", "client", "index.js")),
      ...(await load("sdk", "dist", "esm", "client", "streamableHttp.js")),
    }
  : await load("client", "dist", "index.mjs");
const types = v1 ? await load("sdk", "dist", "esm", "types.js") : undefined;
const onNotification = (client, method, handler) =>
  v1
    ? client.setNotificationHandler(types[method.v1], handler)
    : client.setNotificationHandler(method.name, handler);
const UPDATED = {
  v1: "ResourceUpdatedNotificationSchema",
  name: "notifications/resources/updated",
};
const LIST_CHANGED = {
  v1: "PromptListChangedNotificationSchema",
  name: "notifications/prompts/list_changed",
};

const say = (what) => console.log(JSON.stringify(what));
const refused = (promise) => promise.then(
  () => "nothing was refused",
  (error) => error.message,
);
const mode = era === "legacy" ? "legacy" : { pin: "2026-07-28" };
const client = new Client({ name: "kinds-client", version: "1" }, { versionNegotiation: { mode } });
let promptsChanged;
const changed = new Promise((resolve) => (promptsChanged = resolve));
onNotification(client, LIST_CHANGED, promptsChanged);
await client.connect(new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { authorization: `Bearer ${token}` } },
}));

say({ prompts: (await client.listPrompts()).prompts });
say(await client.getPrompt({ name: "report", arguments: { year: "2026" } }));
say({ refused: await refused(client.getPrompt({ name: "report", arguments: {} })) });
const prompt = { type: "ref/prompt", name: "report" };
const region = { name: "region", value: "u" };
say((await client.complete({ ref: prompt, argument: region })).completion);

say({ resources: (await client.listResources()).resources });
say({ templates: (await client.listResourceTemplates()).resourceTemplates });
say((await client.readResource({ uri: "data://orders" })).contents[0]);
say((await client.readResource({ uri: "frame://orders" })).contents[0]);
say({ refused: await refused(client.readResource({ uri: "frame://nobody/knows" })) });
const template = { type: "ref/resource", uri: "frame://{name}" };
const name = { name: "name", value: "or" };
say((await client.complete({ ref: template, argument: name })).completion);
say((await client.readResource({ uri: "skill://weekly/SKILL.md" })).contents[0]);

const updated = new Promise((resolve) => onNotification(client, UPDATED, resolve));
const subscription = { promptsListChanged: true, resourceSubscriptions: ["data://orders"] };
if (era === "legacy") await client.subscribeResource({ uri: "data://orders" });
else await client.listen(subscription);
say({ subscribed: "data://orders" });
say({ updated: (await updated).params.uri });
await changed;
say({ prompts: (await client.listPrompts()).prompts });
await client.close();
process.exit(0);
