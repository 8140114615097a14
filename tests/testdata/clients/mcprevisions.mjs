// Both generations of the protocol's own TypeScript clients, in each way that they choose a revision, over a restart of the server. Prints
// "ready" when all have read, goes on when a line comes in, and prints what is wrong, a line each.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as First } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { url, key } = JSON.parse(process.env.DOCENT_MCP);
const problems = [];
const about = { name: "revisions", version: "1" };
const over = (transport) => new transport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const clients = { "the first client": [new First(about), FirstTransport] };
for (const mode of ["legacy", "auto", { pin: "2026-07-28" }])
  clients[`the second client, ${JSON.stringify(mode)}`] = [new Client(about, { versionNegotiation: { mode } }), StreamableHTTPClientTransport];

async function reads(name, client) {
  try {
    const { tools } = await client.listTools();
    if (tools.length !== 4) problems.push(`${name}: ${tools.length} tools`);
    const { resources } = await client.listResources();
    if (resources.length < 3) problems.push(`${name}: ${resources.length} resources`);
    for (const { uri } of resources)
      if (!(await client.readResource({ uri })).contents[0].text) problems.push(`${name}: ${uri} has no text`);
    await client.listResourceTemplates();
    const found = await client.callTool({ name: "search", arguments: { query: "moor a boat" } });
    if (!found.content[0].text.includes("harbour moor")) problems.push(`${name}: ${found.content[0].text}`);
  } catch (error) {
    problems.push(`${name}: ${String(error).replaceAll("\n", " ").slice(0, 400)}`);
  }
}

for (const [name, [client, transport]] of Object.entries(clients)) {
  await client.connect(over(transport));
  await reads(name, client);
}
console.log("ready");
await new Promise((resolve) => process.stdin.once("data", resolve));
for (const [name, [client]] of Object.entries(clients)) {
  await reads(`${name}, after a restart`, client);
  await client.close();
}
for (const p of problems) console.log(p);
process.exit(0);
