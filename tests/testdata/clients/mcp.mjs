// The official TypeScript clients of the Model Context Protocol against a real server: they list, call, follow progress, cancel, and come
// back to an answer after their connection broke. Prints what is wrong, a line each.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { url, key, endless } = JSON.parse(process.env.DOCENT_MCP);
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
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let events = 0, came = "";
  const body = new ReadableStream({
    async pull(controller) {
      if (events++ < 2) { // one by one: all of them may have come at once
        while (!came.includes("\n\n")) came += (await reader.read()).value ?? "\n\n";
        const at = came.indexOf("\n\n") + 2;
        controller.enqueue(new TextEncoder().encode(came.slice(0, at)));
        came = came.slice(at);
        return;
      }
      await reader.cancel();
      controller.error(new Error("the connection broke"));
      broken();
    },
  }, { highWaterMark: 0 }); // an event is only taken when it is read: what was enqueued would be lost with the error
  return new Response(body, { status: response.status, headers: response.headers });
};

/** meet connects a client to a project. */
async function meet(url, key) {
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
  return { client, transport, answered, asked };
}

const { client, transport } = await meet(url, key);
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

// Cancelled: the client gets no answer, also later, and goes on with the next call. The answer is far from its end then.
const far = await meet(endless.url, endless.key);
const stop = new AbortController();
const cancelled = far.client.callTool(question, undefined, { signal: stop.signal, onprogress: () => stop.abort() }).then(() => "answered", () => "cancelled");
expect("a cancelled call", await cancelled === "cancelled", await cancelled);
const dropped = far.asked.at(-1);
expect("a search after a cancelled call", text(await far.client.callTool({ name: "search", arguments: { query: "moor" } })).includes("Mooring"), "");

// Broken: the rest of the answer comes over the next connection.
const broke = new Promise((resolve) => { cut = resolve; });
const resumed = client.callTool(question, undefined, { onprogress: () => {} }).then(text, (error) => `failed: ${error}`);
await broke;
expect("an answer after the connection broke", (await resumed).includes("harbour moor"), await resumed);

expect("search after all that", text(await client.callTool({ name: "search", arguments: { query: "moor" } })).includes("Mooring"), "");
const wrong = await client.callTool({ name: "search", arguments: { query: "" } });
expect("a wrong argument names its field", wrong.isError && text(wrong).includes("query"), wrong);
// The server has stopped with it: what comes is that the call was cancelled, which clients pass over.
while (!far.answered.has(dropped)) await new Promise((resolve) => setTimeout(resolve, 20));
const end = far.answered.get(dropped);
expect("a cancelled call is not carried on", end.result?.isError && text(end.result).includes("canceled"), end);
for (const met of [{ client, transport }, far]) {
  await met.transport.terminateSession();
  await met.client.close();
}
for (const p of problems) console.log(p);
