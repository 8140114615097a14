// LangChain, whose model n8n uses, and Continue, which ask by the form of OpenAI, against a real server. Prints what is wrong, a line each.
import { ChatOpenAI } from "@langchain/openai";
import { constructLlmApi } from "@continuedev/openai-adapters";
const { url, key, domain } = JSON.parse(process.env.DOCENT_OPENAI);
const problems = [];
const expect = (what, ok, got) => ok || problems.push(`${what}: ${JSON.stringify(got)?.slice(0, 600)}`);
const ferry = "When does the ferry leave?";
for (const useResponsesApi of [false, true]) {
  const name = `LangChain${useResponsesApi ? ", Responses" : ""}`;
  const chat = new ChatOpenAI({ model: domain, apiKey: key, useResponsesApi, maxRetries: 0, configuration: { baseURL: `${url}/v1` } });
  const answer = await chat.invoke([["system", "Speak of rockets."], ["human", ferry]]);
  expect(`${name}: an answer`, answer.text.includes("every hour") && answer.usage_metadata?.total_tokens > 0, answer);
  const next = await chat.invoke([["human", ferry], answer, ["human", "And what do tickets cost?"]]);
  expect(`${name}: a conversation`, next.text.includes("four coins"), next);
  let text = "";
  for await (const part of await chat.stream(ferry)) text += part.text;
  expect(`${name}: a stream`, text === answer.text, text);
}
const api = constructLlmApi({ provider: "openai", apiKey: key, apiBase: `${url}/v1/` });
const body = { model: domain, messages: [{ role: "user", content: ferry }] };
const whole = await api.chatCompletionNonStream({ ...body, stream: false }, new AbortController().signal);
expect("Continue: an answer", whole.choices[0].message.content.includes("every hour"), whole);
let streamed = "";
for await (const part of api.chatCompletionStream({ ...body, stream: true }, new AbortController().signal)) streamed += part.choices[0]?.delta.content ?? "";
expect("Continue: a stream", streamed === whole.choices[0].message.content, streamed);
for (const p of problems) console.log(p);
