// The TypeScript SDK's client, over stdio or HTTP: list the tools, begin a session, read a file, fail to read another,
// change one if CHANGE has the arguments; tell it as JSON.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [command, ...args] = process.argv.slice(2);
const { CHANGE, KAIZA_TOKEN } = process.env;
const headers = KAIZA_TOKEN ? { Authorization: `Bearer ${KAIZA_TOKEN}` } : {};
const client = new Client({ name: "visit", version: "1" });
await client.connect(
  command.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env: process.env }),
);

const { tools } = await client.listTools();
const begun = await client.callTool({ name: "begin_session", arguments: { role: "WINDSURF" } });
const session_id = begun.structuredContent.session_id;
const read = await client.callTool({ name: "read_file", arguments: { path: "a.txt", session_id } });
const missing = await client.callTool({ name: "read_file", arguments: { path: "b.txt", session_id } });
const change = CHANGE && { ...JSON.parse(CHANGE), session_id };
const changed = CHANGE && (await client.callTool({ name: "write_file", arguments: change }));
const unknown = await client.callTool({ name: "zip", arguments: {} }).catch((error) => error.code);
await client.close();

console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    read,
    missing,
    changed,
    unknown,
  }),
);
