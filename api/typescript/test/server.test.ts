// The client against a real server, which tests/api/sdk_test.go starts. What fails on the way is made by the fetch that the client is given.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import {
  type AnswerPart, ApiError, ConflictError, ConnectionError, Docent, DocentError, ForbiddenError, InvalidRequestError, type Job, type JobEvent,
  NotFoundError, RateLimitError, UnauthorizedError, UnavailableError, WaitTimeoutError, type WholeAnswer,
} from "docent-client";

interface Project {
  id: string;
  domain: string;
  admin: string;
  assistant: string;
}
const { server, control, harbour, slow, limited, guarded, private: closed, secret } = JSON.parse(process.env["DOCENT_SDK"]!) as
  { server: string; control: string; harbour: Project; slow: Project; limited: Project; guarded: Project; private: Project; secret: string };

type Fetch = (request: Request) => Promise<Response>;
const reader = (p: Project, fetch?: Fetch) => new Docent({ server, key: p.assistant, fetch });
const admin = (p: Project, fetch?: Fetch) => new Docent({ server, key: p.admin, fetch });
const prompt = 'rename "ferry" to "boat" everywhere';

/** cutting breaks the first `times` streams that it sees, each after so many bytes more than the one before. */
function cutting(times: number, bytes: number): Fetch & { cuts: number } {
  const cut = async (request: Request) => {
    const response = await fetch(request);
    const streams = /event-stream|text\/plain/.test(response.headers.get("Content-Type") ?? "");
    if (!streams || !response.body || cut.cuts >= times) return response;
    cut.cuts++;
    let left = bytes * cut.cuts;
    const body = response.body.getReader();
    return new Response(new ReadableStream({
      async pull(controller) {
        if (left <= 0) {
          await body.cancel();
          return controller.error(new TypeError("the connection broke"));
        }
        const { done, value } = await body.read();
        if (done) return controller.close();
        controller.enqueue(value.subarray(0, left));
        left -= value.length;
      },
    }, { highWaterMark: 0 }), response);
  };
  cut.cuts = 0;
  return cut;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** read collects an answer as a page would show it. */
async function read(answer: AsyncIterable<AnswerPart>, each?: (shown: string) => Promise<void> | void) {
  let text = "";
  let urls: string[] = [];
  const kinds: string[] = [];
  let end: WholeAnswer | undefined;
  for await (const part of answer) {
    if (kinds.at(-1) !== part.type) kinds.push(part.type);
    if (part.type === "restart") [text, urls] = ["", []];
    if (part.type === "text") text += part.text;
    if (part.type === "source") urls.push(part.source.url);
    if (part.type === "finish") end = part.answer;
    await each?.(text);
  }
  assert.ok(end, "an answer ends with its finish");
  assert.equal(text, end.text);
  assert.deepEqual(urls, end.sources.map((s) => s.url));
  return { ...end, kinds };
}

/** stored is what the server's thread holds: the questions and answers, in order. */
async function stored(p: Project, threadId: string) {
  return (await admin(p).readThread(p.id, threadId)).messages.map((m) => m.content);
}

for (const protocol of ["v2", "v1"] as const) {
  test(`${protocol}: an answer comes in parts, and the conversation goes on`, async () => {
    const docent = reader(harbour);
    const first = await read(docent.ask(harbour.domain, { question: "When does the ferry leave?", protocol }));
    assert.equal(first.kinds[0], "start");
    assert.equal(first.kinds.at(-1), "finish");
    assert.match(first.text, /every hour/);
    assert.match(first.sources[0]!.url, /ferries/);
    assert.ok(first.threadKey);
    const second = await docent.ask(harbour.domain, { question: "What do tickets cost?", protocol, threadId: first.threadId, threadKey: first.threadKey }).whole();
    assert.equal(second.threadId, first.threadId);
    assert.match(second.text, /four coins/);
    assert.equal((await stored(harbour, first.threadId)).length, 4);
    const again = await docent.resume(harbour.domain, first.threadId, { protocol });
    assert.equal((await again!.whole()).text, second.text);
    assert.equal(await docent.resume(harbour.domain, `thr_${"0".repeat(30)}`, { protocol }), null);
    await docent.rate(harbour.domain, second, "down", { comment: "too short" });
    const rated = (await all(admin(harbour).feedback(harbour.id))).find((f) => f.id === second.messageId);
    assert.deepEqual([rated?.rating, rated?.comment], ["down", "too short"]);
  });

  test(`${protocol}: an answer whose connection breaks twice comes whole, once`, async () => {
    const cut = cutting(2, 150);
    const answer = await read(reader(slow, cut).ask(slow.domain, { question: "Tell me slowly.", protocol }));
    assert.equal(cut.cuts, 2);
    assert.ok(!answer.kinds.includes("restart"), "what is the same is not handed over again");
    assert.deepEqual(await stored(slow, answer.threadId), ["Tell me slowly.", answer.text]);
  });

  test(`${protocol}: a question whose answer never began is not asked twice`, async () => {
    let asked = 0;
    const lost: Fetch = async (request) => {
      const response = await fetch(request);
      if (request.method !== "POST" || asked++ > 0) return response;
      await response.body?.cancel();
      throw new TypeError("the connection broke");
    };
    const answer = await read(reader(slow, lost).ask(slow.domain, { question: "Tell me once.", protocol }));
    assert.equal(asked, 1);
    assert.deepEqual(await stored(slow, answer.threadId), ["Tell me once.", answer.text]);
    asked = 0;
    const { threadId, threadKey } = answer;
    const next = await read(reader(slow, lost).ask(slow.domain, { question: "And then?", protocol, threadId, threadKey }));
    assert.notEqual(next.messageId, answer.messageId, "the answer to the question before");
    assert.deepEqual(await stored(slow, threadId), ["Tell me once.", answer.text, "And then?", next.text]);
  });
}

test("an answer outlives the server that wrote it", async () => {
  let killed = false;
  const answer = await read(new Docent({ server, key: slow.assistant, retries: 30 }).ask(slow.domain, "Tell me over a kill."), async (shown) => {
    if (killed || shown.length < 20) return;
    killed = true;
    assert.equal((await fetch(`${control}/restart`, { method: "POST" })).status, 200);
  });
  assert.ok(killed);
  assert.deepEqual(await stored(slow, answer.threadId), ["Tell me over a kill.", answer.text]);
});

test("a reader who leaves stops reading; a signal stops waiting", async () => {
  const stop = new AbortController();
  const parts = reader(slow).ask(slow.domain, { question: "Tell me and I leave.", signal: stop.signal });
  await assert.rejects(read(parts, (text) => { if (text) stop.abort(new Error("I left")); }), /I left/);
  for await (const text of reader(slow).ask(slow.domain, "Again.").text()) {
    assert.ok(text);
    break;
  }
});

test("a proof of work is done where the project asks for one", async () => {
  assert.match((await reader(guarded).ask(guarded.domain, "Where is the ferry?").whole()).text, /ferry/);
  const refused = await reader(guarded).api.POST("/discovery/v2/assistant/{domain}/message", { params: { path: { domain: guarded.domain } },
    body: { fp: "anonymous", messages: [{ role: "user", parts: [{ type: "text", text: "Where is the ferry?" }] }] } }).catch((e: unknown) => e);
  assert.ok(refused instanceof ForbiddenError && refused.challenge);
});

test("search and pages", async () => {
  const docent = reader(harbour);
  const [hit] = await docent.search(harbour.domain, "tickets");
  assert.match(hit!.path, /ferries/);
  assert.deepEqual(await docent.search(harbour.domain, { query: "tickets", filter: { version: "9.9" } }), []);
  assert.match((await docent.readPage(harbour.domain, hit!.path)).content, /four coins/);
});

test("a job is created once, followed over a broken connection, and ends", async () => {
  const cut = cutting(2, 500);
  let lose = true;
  const docent = admin(harbour, async (request) => {
    const response = await cut(request);
    if (request.method !== "POST" || !lose) return response;
    lose = false;
    throw new TypeError("the connection broke"); // the server has the job; its answer is lost
  });
  const before = await all(docent.jobs(harbour.id));
  const job = await docent.createJob(harbour.id, { prompt, dryRun: true });
  assert.equal(lose, false);
  assert.equal((await all(docent.jobs(harbour.id))).length, before.length + 1);

  const follow = async (d: Docent) => {
    const seen: JobEvent[] = [];
    const log = d.jobEvents(harbour.id, job.id);
    for (;;) {
      const next = await log.next();
      if (next.done) return { seen, job: next.value };
      seen.push(next.value);
    }
  };
  const whole = await follow(admin(harbour));
  const broken = await follow(docent);
  assert.equal(cut.cuts, 2);
  assert.deepEqual(broken, whole);
  assert.equal(whole.job.outcome, "changed");
  assert.match(whole.seen.find((e) => e.type === "edited")!.diff!, /\+The boat to the island/);
  assert.deepEqual(await docent.waitForJob(harbour.id, job.id), whole.job);
  assert.deepEqual(await docent.readJob(harbour.id, job.id), whole.job);

  const named = { idempotencyKey: "sdk-test" };
  const [a, b] = await Promise.all([docent.createJob(harbour.id, { prompt, dryRun: true }, named), docent.createJob(harbour.id, { prompt, dryRun: true }, named)]);
  assert.equal(a.id, b.id);
  await assert.rejects(docent.createJob(harbour.id, { prompt: "another" }, named), ConflictError);
  await docent.followUp(harbour.id, a.id, 'rename "boat" to "ship" everywhere');
  assert.equal((await docent.waitForJob(harbour.id, a.id, { timeout: 60_000 })).status, "completed");
  assert.ok((await docent.archiveJob(harbour.id, a.id)).archivedAt);
});

test("lists are read to their end, page by page", async () => {
  for (let i = 0; i < 3; i++) await admin(harbour).createJob(harbour.id, { prompt: `${prompt} ${i}`, dryRun: true });
  const one = await all(admin(harbour).jobs(harbour.id));
  let requests = 0;
  const small = admin(harbour, (request) => {
    requests++;
    return fetch(new Request(request.url.replace(/limit=\d+/, "limit=2"), request));
  });
  const ids = (jobs: Job[]) => jobs.map((j) => j.id);
  assert.deepEqual(ids(await all(small.jobs(harbour.id))), ids(one));
  assert.ok(requests >= 2, `${requests} pages`);
  assert.ok((await all(small.jobs(harbour.id, { archived: true }))).every((j) => j.archivedAt));
  const asked = await all(small.conversations(harbour.id, { dateFrom: "2020-01-01" }));
  assert.ok(asked.some((c) => c.query === "When does the ferry leave?"), "conversations");
  assert.ok((await all(small.callers(harbour.id))).some((c) => c.caller === "anonymous"));
  assert.ok(Array.isArray(await all(small.searches(harbour.id))));
  assert.ok((await all(small.pageFeedback(harbour.id))).length > 0);
});

test("an update is waited for", async () => {
  const docent = admin(harbour);
  const update = await docent.waitForUpdate(await docent.startUpdate(harbour.id), { timeout: 60_000 });
  assert.equal(update.status, "success");
});

test("every refusal has a type, and says what to do", async () => {
  const refused = async <T extends ApiError>(call: Promise<unknown>, type: abstract new (...args: never[]) => T): Promise<T> => {
    const error = await call.then(() => assert.fail("it was not refused"), (e: unknown) => e);
    assert.ok(error instanceof type && error instanceof DocentError, `${error}`);
    assert.equal(error.name, type.name);
    assert.ok(error.requestId && error.code && error.message);
    return error;
  };
  const wrong = await refused(admin(harbour).createJob(harbour.id, { prompt: " " }), InvalidRequestError);
  assert.deepEqual(wrong.details.map((d) => d.field), ["prompt"]);
  await refused(new Docent({ server }).search(harbour.domain, "x"), UnauthorizedError);
  await refused(reader(harbour).createJob(harbour.id, { prompt }), ForbiddenError);
  await refused(admin(harbour).readJob(harbour.id, "job_none"), NotFoundError);
  await refused(reader(harbour).ask("nowhere.example.com", "Who?").whole(), NotFoundError);
  await admin(limited).createJob(limited.id, { prompt, dryRun: true });
  const used = await refused(admin(limited).createJob(limited.id, { prompt, dryRun: true }), RateLimitError);
  assert.equal(used.limit, "project-hour");
  assert.ok(used.retryAfter! > 0);
  const raw = await admin(harbour).api.GET("/v2/agent/{projectId}/jobs", { params: { path: { projectId: harbour.id }, query: { limit: 1 } } });
  assert.equal(raw.data?.jobs.length, 1);
  await refused(admin(harbour).api.GET("/v2/agent/{projectId}/jobs", { params: { path: { projectId: "none" } } }), NotFoundError);
  assert.throws(() => new Docent({ server: "nowhere" }), /server: "nowhere"/);
});

test("only what does nothing twice is repeated", async () => {
  const busy = (times: number, status = 503) => {
    const f = async (request: Request) => {
      f.requests++;
      return f.requests <= times ? new Response("busy", { status }) : fetch(request);
    };
    f.requests = 0;
    return f;
  };
  let f = busy(2);
  await assert.rejects(reader(harbour, f).readPage(harbour.domain, "ferries"), UnavailableError);
  assert.equal(f.requests, 1, "a POST without a key of idempotency");
  f = busy(2, 502);
  assert.equal((await admin(harbour, f).createJob(harbour.id, { prompt, dryRun: true })).status, "active");
  assert.equal(f.requests, 3);
  f = busy(9);
  await assert.rejects(new Docent({ server, key: harbour.admin, fetch: f, retries: 1 }).readJob(harbour.id, "x"), UnavailableError);
  assert.equal(f.requests, 2);
  f = busy(9, 400);
  await assert.rejects(admin(harbour, f).readJob(harbour.id, "x"), { message: "the server answered 400", code: "" });
  assert.equal(f.requests, 1);
  await assert.rejects(new Docent({ server: "http://127.0.0.1:1", retries: 0 }).ask("x", "y").whole(), ConnectionError);
});

test("waiting ends at its time", async () => {
  const never = admin(harbour, (request) => new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
  }));
  await assert.rejects(never.waitForJob(harbour.id, "x", { timeout: 20 }), WaitTimeoutError);
  const stop = new AbortController();
  const waiting = never.waitForJob(harbour.id, "x", { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

/** sign is what a site's own server does. */
function sign(claims: Record<string, unknown>) {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

test("a reader token opens what is for the reader's groups, and one that has ended is fetched again", async () => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "alice", groups: ["staff"], aud: closed.domain };
  const ended = sign({ ...claims, exp: now - 3600 });
  const asked: boolean[] = [];
  const alice = new Docent({ server, key: closed.assistant, readerToken: ({ fresh }) => {
    asked.push(fresh);
    return fresh ? sign({ ...claims, exp: now + 3600 }) : ended;
  } });
  assert.match((await alice.readPage(closed.domain, "salaries")).content, /77,000/);
  assert.deepEqual(asked, [false, true]);
  const { threadId, text } = await alice.ask(closed.domain, "What is the salary of grade nine?").whole();
  assert.match(text, /77,000/);
  assert.equal(await reader(closed).resume(closed.domain, threadId), null, "somebody else resumes the thread");
  assert.ok(await alice.resume(closed.domain, threadId));
  await assert.rejects(reader(closed).readPage(closed.domain, "salaries"), NotFoundError);
  await assert.rejects(reader(closed).readPage(closed.domain, { path: "salaries", groups: ["staff"] }), ForbiddenError);
  await assert.rejects(new Docent({ server, key: closed.assistant, readerToken: ended }).readPage(closed.domain, "salaries"),
    (error) => error instanceof UnauthorizedError && error.code === "reader_token");
});
