// Large and odd values through the TypeScript SDK's client, over stdio or HTTP: each call has to be answered in time.
// Tells as JSON how many calls were answered, and which were not.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "fuzz", version: "1" });
await client.connect(
  command.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env }),
);

const nested = (depth) => Array.from({ length: depth }).reduce((inner) => [inner], 1);
const values = [
  ...[0, -0, 1.5, 2 ** 31, 2 ** 53, 2 ** 63, -(2 ** 63) - 2 ** 12, 1e21, 1e308, 5e-324, Infinity, NaN],
  ...["", "\0", "\ud800", "\udfff\ud800", "\u2028", "a\\\"b", "x".repeat(5000), "é".repeat(300)],
  ...["x".repeat(1_200_000), "\n".repeat(1_200_000), "x".repeat(9 << 20), "\"".repeat(9 << 20), "x".repeat(17 << 20)],
  ...[50, 97, 98, 99, 100, 101, 300, 2000].map(nested),
  ...[null, true, [], {}, { "": {} }, { "\ud800": 1 }, { __proto__: null, constructor: 1 }, Array(200_000).fill(0)],
];
const slots = [
  ["write_file", "content"],
  ["read_file", "start_line"],
  ["read_file", "path"],
  ["context_resolve", "budget"],
  ["context_resolve", "query"],
  ["begin_session", "role"],
  ["nope", "x"],
];
const calls = [
  ...values.flatMap((value) => slots.map(([name, argument]) => ({ name, arguments: { [argument]: value } }))),
  ...values.slice(0, 20).map((value) => ({ arguments: { content: value }, name: "write_file" })),
  ...["", "\0", "\ud800", "x".repeat(5000), "__proto__"].map((name) => ({ name, arguments: {} })),
];

let answered = 0;
const failed = [];
for (const [index, call] of calls.entries()) {
  await client.callTool(call, undefined, { timeout: 30_000 }).then(
    () => (answered += 1),
    // The client's own errors, such as of a time-out, have no code of Kaiza's.
    (error) => (error.data?.error_code ? (answered += 1) : failed.push([index, call.name, String(error).slice(0, 300)])),
  );
}
await client.close();
console.log(JSON.stringify({ calls: calls.length, answered, failed }));
