// The chat SDK 4, against version 1 of the assistant operation.
import assert from "node:assert/strict";
import { behindProxy, conversation, domain, end, endlessDomain, endlessKey, key, lockedDomain, lockedKey, mount, otherUrl, reloadProxy, restart, scenario, slowDomain, slowKey, until, url } from "./harness.mjs";

const { useChat } = await import("react4");
const { version: release } = (await import("ai4/package.json", { with: { type: "json" } })).default;
console.log(`ai ${release}`);

function open({ at = url, d = domain, k = key, id, initialMessages, threadKey, body = {} } = {}) {
  const errors = [];
  const finished = [];
  const headers = [];
  const thread = { id: null };
  const page = mount(() =>
    useChat({
      api: `${at}/discovery/v1/assistant/${d}/message`, ...(id ? { id } : {}), ...(initialMessages ? { initialMessages } : {}),
      sendExtraMessageFields: true,
      headers: { Authorization: `Bearer ${k}`, ...(threadKey ? { "X-Thread-Key": threadKey } : {}) },
      onError: (error) => errors.push(error),
      onResponse: (response) => { headers.push(response.headers.get("x-thread-id")); thread.key = response.headers.get("x-thread-key"); },
      onFinish: (message) => finished.push(message),
    }),
  );
  return { page, errors, finished, headers, thread, body, get chat() { return page.current; } };
}

const last = (c) => c.chat.messages.at(-1);
const finishOf = (c) => c.chat.data?.filter((event) => event.type === "finish").at(-1);
const send = (c, content) => c.chat.append({ role: "user", content }, { body: { fp: "anonymous", threadId: c.thread.id, ...c.body } });

async function ask(c, question) {
  const before = c.finished.length, messages = c.chat.messages.length;
  await send(c, question);
  await until("the answer is there", () => c.errors.length > 0 || (c.chat.status === "ready" && c.finished.length > before && c.chat.messages.length >= messages + 2));
  assert.deepEqual(c.errors, []);
  c.thread.id = finishOf(c).threadId;
  return last(c);
}

await scenario("three turns in one thread, with sources and the thread's id", async () => {
  const c = open();
  await until("the page is there", () => c.chat);
  const ids = new Set();
  for (const question of ["When does the ferry leave?", "What do tickets cost?", "Where is the lighthouse?"]) {
    const message = await ask(c, question);
    assert.ok(message.content.length > 0, "the answer has text");
    const sources = message.parts.filter((p) => p.type === "source").map((p) => p.source);
    assert.ok(sources.length > 0 && sources.every((s) => s.url && s.title), "the answer has sources with URL and title");
    assert.equal(message.annotations.length, 1);
    assert.equal(message.annotations[0].type, "finish");
    assert.equal(message.annotations[0].threadId, c.thread.id);
    assert.equal(c.headers.at(-1), c.thread.id, "the header has the id too");
    ids.add(message.id);
  }
  assert.equal(new Set(c.headers).size, 1, "the thread goes on");
  assert.equal(ids.size, 3, "each answer has an id of its own");
  assert.equal(c.chat.messages.length, 6);
  c.page.unmount();
});

await scenario("the answer appears piece by piece", async () => {
  const c = open({ d: endlessDomain, k: endlessKey });
  await until("the page is there", () => c.chat);
  send(c, "Tell me slowly.");
  const lengths = () => new Set(c.page.renders.map((r) => r.messages.at(-1)).filter((m) => m?.role === "assistant").map((m) => m.content.length));
  await until("the text is rendered in several steps", () => c.errors.length > 0 || lengths().size > 5); // the answer is far from its end
  assert.deepEqual(c.errors, []);
  c.chat.stop();
  await until("it has stopped", () => c.chat.status === "ready");
  c.page.unmount();
});

await scenario("a wrong key is an error with the server's sentence", async () => {
  const c = open({ k: key.slice(0, -1) + (key.endsWith("0") ? "1" : "0") });
  await until("the page is there", () => c.chat);
  await send(c, "Hello?");
  await until("the error is shown", () => c.chat.status === "error");
  assert.equal(JSON.parse(c.chat.error.message).code, "unauthorized");
  c.page.unmount();
});

await scenario("a bad body is an error that names the field", async () => {
  const c = open({ body: { retrievalPageSize: 51 } });
  await until("the page is there", () => c.chat);
  await send(c, "Hello?");
  await until("the error is shown", () => c.chat.status === "error");
  const body = JSON.parse(c.chat.error.message);
  assert.equal(body.code, "invalid_request");
  assert.equal(body.details[0].field, "retrievalPageSize");
  c.page.unmount();
});

await scenario("stop, and then another turn", async () => {
  const c = open({ d: slowDomain, k: slowKey });
  await until("the page is there", () => c.chat);
  send(c, "Tell me slowly.");
  await until("some text is there", () => last(c)?.role === "assistant" && last(c).content.length > 20);
  c.chat.stop();
  await until("it has stopped", () => c.chat.status === "ready");
  c.thread.id = c.headers[0];
  assert.match(c.thread.id, /^thr_/, "the thread's id is known after an abort");
  await ask(c, "And again.");
  assert.equal(c.thread.id, c.headers[0]);
  c.page.unmount();
});

await scenario("reload replaces the answer", async () => {
  const c = open();
  await until("the page is there", () => c.chat);
  const first = await ask(c, "When does the ferry leave?");
  await c.chat.reload({ body: { fp: "anonymous", threadId: c.thread.id } });
  await until("the new answer is there", () => c.chat.status === "ready" && c.finished.length === 2);
  assert.equal(c.chat.messages.length, 2);
  assert.notEqual(last(c).id, first.id);
  assert.equal(finishOf(c).threadId, c.thread.id);
  assert.deepEqual(c.errors, []);
  c.page.unmount();
});

async function begin(id, options = {}) {
  const c = open({ d: slowDomain, k: slowKey, id, ...options });
  await until("the page is there", () => c.chat);
  send(c, "Tell me slowly.");
  await until("some text is there", () => last(c)?.role === "assistant" && last(c).content.length > 20);
  return c;
}

async function resume(id, question, options = {}) {
  const c = open({ d: slowDomain, k: slowKey, id, initialMessages: [question], ...options });
  await until("the page is there", () => c.chat);
  c.chat.experimental_resume();
  await until("the resumed answer is complete", () => c.chat.status === "ready" && last(c)?.role === "assistant" && c.finished.length > 0, 60);
  assert.deepEqual(c.errors, []);
  const parts = last(c).content.trim().split(/\s+/);
  parts.forEach((part, n) => assert.equal(part, `part-${n}`));
  assert.equal(parts.length, 60);
  c.page.unmount();
  return c;
}

/** refused resumes and gets an error that says something. SDK 4 takes an answer without a stream for an error, too. */
async function refused(id, options = {}) {
  const c = open({ d: slowDomain, k: slowKey, id, ...options });
  await until("the page is there", () => c.chat);
  c.chat.experimental_resume();
  await until("it is refused", () => c.errors.length > 0);
  assert.equal(c.chat.messages.length, 0);
  c.page.unmount();
  return c.errors[0].message;
}

await scenario("resume after a reload of the page", async () => {
  const id = `chat-4-${crypto.randomUUID()}`;
  const before = await begin(id);
  const question = before.chat.messages[0];
  before.chat.stop(); // the old page stays mounted, in a cache of its own: the hook writes to it once more
  await resume(id, question);
});

await scenario("resume after the server was killed and started again", async () => {
  const id = `chat-4-${crypto.randomUUID()}`;
  const before = await begin(id);
  const question = before.chat.messages[0];
  await restart();
  await resume(id, question);
});

if (behindProxy) {
  await scenario("an answer goes on, and is resumed, while the proxy takes a new configuration", async () => {
    const id = `chat-4-${crypto.randomUUID()}`;
    const before = await begin(id);
    await reloadProxy();
    await resume(id, before.chat.messages[0]);
    await until("the first page has all of it", () => before.chat.status === "ready" && before.finished.length > 0);
    assert.deepEqual(before.errors, []);
    assert.equal(last(before).content.trim().split(/\s+/).at(-1), "part-59");
  });
}

// A page may have one chat id for all of its visitors.
await scenario("two visitors with the same chat id see only their own answers", async () => {
  const one = await begin("docs");
  assert.equal(await refused("docs", { at: otherUrl }), "The response body is empty.");
  const theirs = await begin("docs", { at: otherUrl });
  assert.notEqual(theirs.headers[0], one.headers[0]);
  for (const [before, at] of [[one, url], [theirs, otherUrl]]) {
    const question = before.chat.messages[0];
    before.chat.stop();
    const after = await resume("docs", question, { at });
    assert.equal(finishOf(after).threadId, before.headers[0], "each visitor's own thread");
  }
});

await scenario("an identified reader resumes after the server was killed and started again", async () => {
  const id = `chat-4-${crypto.randomUUID()}`;
  const before = await begin(id, { body: { fp: "user-1" } });
  const question = before.chat.messages[0];
  await restart();
  await resume(id, question);
  await restart(); // it is finished now, and only on disk
  await resume(id, question);
});

// SDK 4 does not say that a message was edited: the server sees another question under the same id, and answers it.
await scenario("stop, edit, send", async () => {
  const c = open({ d: slowDomain, k: slowKey });
  await until("the page is there", () => c.chat);
  send(c, "Tell me slowly.");
  await until("some text is there", () => last(c)?.role === "assistant" && last(c).content.length > 20);
  c.chat.stop();
  await until("it has stopped", () => c.chat.status === "ready");
  c.thread.id = c.headers[0];
  const edited = { ...c.chat.messages[0], content: "Tell me something else.", parts: [{ type: "text", text: "Tell me something else." }] };
  c.chat.setMessages([edited]);
  await until("it is edited", () => c.chat.messages.length === 1);
  const before = c.finished.length; // the first answer may have come to its end before it was stopped
  c.chat.reload({ body: { fp: "anonymous", threadId: c.thread.id } });
  await until("the new answer is there", () => c.errors.length > 0 || (c.chat.status === "ready" && c.finished.length > before));
  assert.deepEqual(c.errors, []);
  const held = await conversation(slowDomain, c.thread.id);
  assert.equal(held.at(-2), "Tell me something else.");
  assert.equal(held.at(-1), last(c).content);
  c.page.unmount();
});

await scenario("where a thread key is required, only who has it resumes", async () => {
  const id = `chat-4-${crypto.randomUUID()}`;
  const locked = { d: lockedDomain, k: lockedKey };
  const before = await begin(id, locked);
  assert.ok(before.thread.key, "the opener is told the key at once");
  const question = before.chat.messages[0];
  before.chat.stop();
  for (const threadKey of [undefined, "guess"]) {
    assert.equal(JSON.parse(await refused(id, { ...locked, threadKey })).code, "not_found");
  }
  await resume(id, question, { ...locked, threadKey: before.thread.key });
});

end();
