// AG-UI's own client, which CopilotKit's runtime uses, against a real server: a conversation that the client keeps, pages as an event, a search as
// a tool call, errors. The client checks each event's form and order. Prints what is wrong, a line each.
import { HttpAgent } from "@ag-ui/client";

const { url, key, domain, slow } = JSON.parse(process.env.DOCENT_AGUI);
const problems = [];
const expect = (what, ok, got) => ok || problems.push(`${what}: ${JSON.stringify(got)?.slice(0, 600)}`);
const agentOf = (d, k) => new HttpAgent({ url: `${url}/v1/ag-ui/${d}`, headers: { Authorization: `Bearer ${k}` } });

const agent = agentOf(domain, key);
const ask = async (agent, content) => {
  const seen = { events: [], sources: [], pieces: 0 };
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  const { result, newMessages } = await agent.runAgent({}, {
    onEvent: ({ event }) => { seen.events.push(event.type); },
    onTextMessageContentEvent: () => { seen.pieces++; },
    onCustomEvent: ({ event }) => { if (event.name === "sources") seen.sources = event.value; },
  });
  return { ...seen, result, text: newMessages.filter((m) => m.role === "assistant").map((m) => m.content ?? "").join("") };
};

const first = await ask(agent, "When does the ferry leave?");
expect("an answer", first.text.includes("every hour") && first.text.includes("\n\nSources:\n1. ["), first);
expect("its sources", first.sources[0]?.url.startsWith("https://harbour.example.com/ferries"), first.sources);
expect("its ids", first.result?.threadId.startsWith("thr_") && first.result.messageId, first.result);
expect("its order", first.events[0] === "RUN_STARTED" && first.events.at(-1) === "RUN_FINISHED", first.events);
const second = await ask(agent, "And what do tickets cost?");
expect("a conversation by its messages", second.text.includes("four coins"), second);
expect("each run is a thread of its own", second.result.threadId !== first.result.threadId, second.result);
agent.threadId = first.result.threadId;
const third = await ask(agent, "And what do tickets cost?");
expect("a conversation by its thread", third.result.threadId === first.result.threadId && third.text.includes("four coins"), third);

const streamed = await ask(agentOf(slow.domain, slow.key), "When does the ferry leave?");
expect("a stream", streamed.pieces > 10, streamed);

const quietly = console.error;
console.error = () => {}; // the client prints what it throws
const refused = await ask(agentOf(domain, "dct_pub_nobody"), "q").catch((e) => e);
console.error = quietly;
expect("a wrong key", refused instanceof Error && /401/.test(`${refused.status} ${refused.message}`), `${refused}`);

for (const problem of problems) console.log(problem);
