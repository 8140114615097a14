// The official TypeScript clients of the Model Context Protocol against a real server: they list, call, follow progress, cancel, and come
// back to an answer after their connection broke. Prints what is wrong, a line each.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { url, key } = JSON.parse(process.env.DOCENT_MCP);
const problems = [];
const expect = (what, ok, got) => ok || problems.push(`${what}: ${JSON.stringify(got)?.slice(0, 400)}`);
const text = (result) => result.content.map((c) => c.text).join("");

// flaky breaks the first connection that reads an answer, once it is told to.
let cut = null;
const flaky = async (input, init) => {
  const response = await fetch(input, init);
  if (!cut || init?.method !== "POST" || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const broken = cut;
  cut = null;
  const reader = response.body.getReader();
  let chunks = 0;
  const body = new ReadableStream({
    async pull(controller) {
      if (chunks++ < 2) return controller.enqueue((await reader.read()).value);
      await reader.cancel();
      controller.error(new Error("the connection broke"));
      broken();
    },
  }, { highWaterMark: 0 }); // a chunk is only taken when it is read: what was enqueued would be lost with the error
  return new Response(body, { status: response.status, headers: response.headers });
};

const client = new Client({ name: "conformance", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: flaky, requestInit: { headers: { Authorization: `Bearer ${key}` } },
  reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 200, reconnectionDelayGrowFactor: 1.5, maxRetries: 20 },
});
await client.connect(transport);
const answered = new Map(); // what the server has answered, by the request's id
const deliver = transport.onmessage;
transport.onmessage = (message, extra) => { if (message.id !== undefined && !message.method) answered.set(message.id, message); deliver(message, extra); };
const asked = []; // and of those that were sent
const post = transport.send.bind(transport);
transport.send = (message, options) => { if (message.id !== undefined) asked.push(message.id); return post(message, options); };
const can = client.getServerCapabilities();
expect("what the server says that it can", can?.tools && can.resources && !can.resources.subscribe && !can.completions && !can.prompts, can);
expect("the server's name", client.getServerVersion()?.name === "docent", client.getServerVersion());

const { tools } = await client.listTools();
expect("tools", tools.map((t) => t.name).sort().join() === "ask,feedback,read_page,search", tools);
const { resources } = await client.listResources();
expect("resources", resources.length > 0 && resources.every((r) => r.mimeType === "text/markdown"), resources);
const page = await client.readResource({ uri: resources.at(-1).uri });
const same = await client.callTool({ name: "read_page", arguments: { path: resources.at(-1).name } });
expect("a resource is the page", page.contents[0].text === text(same), page);

const question = { name: "ask", arguments: { question: "How do I moor a boat?" } };
let progress = "";
const answer = await client.callTool(question, undefined, { onprogress: (p) => { progress += p.message ?? ""; } });
expect("an answer", text(answer).includes("harbour moor"), answer);
expect("progress is the answer as it is written", progress !== "" && text(answer).startsWith(progress.trimEnd()), progress);

// Cancelled: the client gets no answer, also later, and goes on with the next call.
const stop = new AbortController();
const cancelled = client.callTool(question, undefined, { signal: stop.signal, onprogress: () => stop.abort() }).then(() => "answered", () => "cancelled");
expect("a cancelled call", await cancelled === "cancelled", await cancelled);
const dropped = asked.at(-1);

// Broken: the rest of the answer comes over the next connection.
const broke = new Promise((resolve) => { cut = resolve; });
const resumed = client.callTool(question, undefined, { onprogress: () => {} }).then(text, (error) => `failed: ${error}`);
await broke;
expect("an answer after the connection broke", (await resumed).includes("harbour moor"), await resumed);

expect("search after all that", text(await client.callTool({ name: "search", arguments: { query: "moor" } })).includes("Mooring"), "");
const wrong = await client.callTool({ name: "search", arguments: { query: "" } });
expect("a wrong argument names its field", wrong.isError && text(wrong).includes("query"), wrong);
// The server has stopped with it: an answer would have come by now, since others of its length have. What comes is that the call was
// cancelled, which clients pass over.
const end = answered.get(dropped);
expect("a cancelled call is not carried on", dropped !== undefined && (!end?.result || end.result.isError && text(end.result).includes("canceled")), end);
await transport.terminateSession();
await client.close();
for (const p of problems) console.log(p);
