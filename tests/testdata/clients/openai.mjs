// OpenAI's own package for Node.js and the AI SDK's provider for servers of its form, against a real server: models, answers in one piece and
// streamed, citations, usage, a conversation by its messages and by its thread, and errors; the same by the Responses. Prints what is wrong, a line each.
import OpenAI from "openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai6";

const { url, key, domain, slow } = JSON.parse(process.env.DOCENT_OPENAI);
const problems = [];
const expect = (what, ok, got) => ok || problems.push(`${what}: ${JSON.stringify(got)?.slice(0, 600)}`);
const user = (content) => ({ role: "user", content });
const ferry = "When does the ferry leave?";

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const models = (await openai.models.list()).data;
expect("models", models.length === 1 && models[0].id === domain, models);
expect("a model", (await openai.models.retrieve(domain)).id === domain, domain);

const whole = await openai.chat.completions.create({ model: domain, messages: [{ role: "system", content: "Speak of rockets." }, user(ferry)] });
const said = whole.choices[0].message;
expect("an answer", said.content.includes("every hour") && whole.choices[0].finish_reason === "stop", whole);
expect("its sources", said.content.includes("\n\nSources:\n1. [") && said.annotations[0].url_citation.url.startsWith("https://harbour.example.com/ferries"), said);
const { start_index, end_index, title } = said.annotations[0].url_citation;
expect("where a citation stands", [...said.content].slice(start_index, end_index).join("").startsWith(`[${title}](`), said);

const follow = await openai.chat.completions.create({ model: domain, messages: [user(ferry), said, user("And what do tickets cost?")] });
expect("a conversation by its messages", follow.choices[0].message.content.includes("four coins"), follow);
const thread = await openai.chat.completions.create({ model: domain, messages: [user("And what do tickets cost?")], metadata: { thread_id: whole.metadata.thread_id } });
expect("a conversation by its thread", thread.metadata.thread_id === whole.metadata.thread_id && thread.choices[0].message.content.includes("four coins"), thread);

const started = await openai.chat.completions.create({ model: slow.domain, stream: true, stream_options: { include_usage: true }, messages: [user(ferry)] },
  { headers: { Authorization: `Bearer ${slow.key}` } });
let text = "", pieces = 0, reason, usage;
for await (const chunk of started) {
  const delta = chunk.choices[0]?.delta.content ?? "";
  if (delta) pieces++;
  text += delta;
  reason = chunk.choices[0]?.finish_reason ?? reason;
  usage = chunk.usage ?? usage;
}
expect("a stream", pieces > 10 && text !== "" && reason === "stop" && usage?.total_tokens === usage?.prompt_tokens + usage?.completion_tokens, { pieces, text, reason, usage });

for (const [what, wrong, status] of [["an unknown model", { model: "gpt-4o" }, 404], ["no question", { messages: [] }, 400], ["several answers", { n: 2 }, 400]]) {
  const problem = await openai.chat.completions.create({ model: domain, messages: [user("q")], ...wrong }).catch((e) => e);
  expect(what, problem.status === status && problem.code && problem.message.length > 20, { status: problem.status, message: problem.message });
}
const stranger = await new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-nobody", maxRetries: 0 }).models.list().catch((e) => e);
expect("a wrong key", stranger instanceof OpenAI.AuthenticationError && stranger.message.includes("API key"), stranger.message);

const model = createOpenAICompatible({ name: "docent", baseURL: `${url}/v1`, apiKey: key, includeUsage: true }).chatModel(domain);
const generated = await generateText({ model, prompt: ferry });
expect("the AI SDK's answer", generated.text.includes("every hour") && generated.finishReason === "stop", generated.text);
let streamed = "";
for await (const piece of streamText({ model, prompt: ferry, onError: ({ error }) => problems.push(`the AI SDK's stream: ${error}`) }).textStream) streamed += piece;
expect("the AI SDK's stream", streamed === generated.text, streamed);


const response = await openai.responses.create({ model: domain, instructions: "Speak of rockets.", input: ferry });
expect("a response", response.output_text.includes("every hour") && response.status === "completed", response);
const mark = response.output[0].content[0].annotations[0];
expect("a response's sources", [...response.output_text].slice(mark.start_index, mark.end_index).join("").startsWith(`[${mark.title}](https://harbour.example.com/ferries`), response.output);
const next = await openai.responses.create({ model: domain, input: "And what do tickets cost?", previous_response_id: response.id });
expect("a conversation by its responses", next.output_text.includes("four coins") && next.metadata.thread_id === response.metadata.thread_id, next);
const items = await openai.responses.create({ model: domain, input: [user(ferry), ...response.output, user("And what do tickets cost?")] });
expect("a conversation by its items", items.output_text.includes("four coins") && items.metadata.thread_id !== response.metadata.thread_id, items);
const live = openai.responses.stream({ model: slow.domain, input: ferry }, { headers: { Authorization: `Bearer ${slow.key}` } });
let grown = "", deltas = 0;
live.on("response.output_text.delta", ({ delta }) => { deltas++; grown += delta; });
const ended = await live.finalResponse();
expect("a response's stream", deltas > 10 && ended.output_text === grown && ended.usage.total_tokens === ended.usage.input_tokens + ended.usage.output_tokens, { deltas, ended });
const astray = await openai.responses.create({ model: domain, input: "q", previous_response_id: "resp_none" }).catch((e) => e);
expect("an unknown response", astray.status === 404 && astray.message.length > 20, astray.message);

const responding = createOpenAI({ baseURL: `${url}/v1`, apiKey: key })(domain);
const answered = await generateText({ model: responding, prompt: ferry });
expect("the AI SDK's response", answered.text.includes("every hour") && answered.finishReason === "stop" && answered.sources[0]?.url.startsWith("https://harbour.example.com/ferries"), answered.sources);
let flowed = "";
const flow = streamText({ model: responding, prompt: ferry, onError: ({ error }) => problems.push(`the AI SDK's stream of a response: ${error}`) });
for await (const piece of flow.textStream) flowed += piece;
expect("the AI SDK's stream of a response", flowed === answered.text && (await flow.sources).length > 0 && (await flow.finishReason) === "stop", { flowed, sources: await flow.sources });

for (const problem of problems) console.log(problem);
