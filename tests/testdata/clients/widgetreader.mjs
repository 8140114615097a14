// The widget's requests in a reader's name, without a browser: what it sends with a token, with one that has ended, and without. Prints what
// is wrong, a line each.
import { createRequire } from "node:module";

const { build } = createRequire(new URL("../../../router/widget/", import.meta.url))("esbuild");
const { server, domain, key, token } = JSON.parse(process.env.DOCENT_WIDGET);
const problems = [];
const check = (what, ok, got = "") => ok || problems.push(`${what} ${typeof got === "string" ? got.slice(0, 300) : JSON.stringify(got)}`);

const { outputFiles } = await build({ bundle: true, format: "esm", write: false, define: { PROOF: '""' },
  stdin: { contents: 'export * from "./api"; export * from "./chat";', resolveDir: new URL("../../../router/widget/src/", import.meta.url).pathname, loader: "ts" } });
globalThis.location = { pathname: "/" };
const memory = () => { const held = {}; return { getItem: (k) => held[k] ?? null, setItem: (k, v) => { held[k] = v; }, removeItem: (k) => { delete held[k]; } }; };
globalThis.sessionStorage = memory();
globalThis.localStorage = memory();
const { Api, Conversation, Store } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);

const asked = [];
let signedIn = true;
const readerToken = async (fresh) => {
  asked.push(fresh);
  return signedIn ? (fresh ? token : `${token}x`) : "";
};
const config = { server, domain, key, version: "", language: "", theme: "", history: false, user: "", greeting: "", suggestions: [], proof: false, readerToken };
const api = new Api(config, server);
const found = (hits) => hits.some((h) => h.content.includes("77,000"));

check("a search in the reader's name finds", found(await api.search("salary grade nine", AbortSignal.timeout(60_000))));
check("a token that is refused is fetched again, once", asked.join() === "false,true", asked);

const ask = async (chat, question) => {
  const ended = new Promise((resolve) => { chat.ended = () => ["done", "failed"].includes(chat.talk.chat.turns.at(-1)?.state) && !chat.talk.busy && resolve(); });
  chat.talk.ask(question);
  await ended;
  return chat.talk.chat.turns.at(-1);
};
const chat = { ended: () => {} };
chat.talk = new Conversation(api, new Store(config), () => chat.ended());
const mine = await ask(chat, "What is the salary of grade nine?");
check("an answer in the reader's name", mine.text.includes("77,000"), mine);
const thread = chat.talk.chat.threadId;
await api.rate({ threadId: thread, threadKey: chat.talk.chat.threadKey, messageId: mine.messageId, rating: "up" }).catch((e) => check("the answer is rated", false, String(e)));

signedIn = false;
check("a search of nobody finds nothing of it", !found(await api.search("salary grade nine", AbortSignal.timeout(60_000))));
const theirs = await ask(chat, "What is the salary of grade nine?");
check("who has signed out goes on in a new thread", theirs.state === "done" && chat.talk.chat.threadId !== thread, theirs);
check("and is told nothing of it", !theirs.text.includes("77,000"), theirs);
check("nobody resumes the reader's thread", await api.resume(thread, undefined, AbortSignal.timeout(60_000)) === null);

process.stdout.write(problems.join("\n"));
