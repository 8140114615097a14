import createFetchClient, { type Client as FetchClient } from "openapi-fetch";
import { Answer, type WholeAnswer } from "./answer.js";
import { ApiError, apiError, ConnectionError, DocentError, ForbiddenError, UnavailableError, WaitTimeoutError } from "./errors.js";
import type { components, operations, paths } from "./schema.js";
import { events, readV1, readV2 } from "./stream.js";

type Schemas = components["schemas"];
type Query<Operation extends keyof operations> = NonNullable<operations[Operation]["parameters"]["query"]>;
/** Options that may be left out may also be undefined. */
type Loose<T> = { [K in keyof T]: undefined extends T[K] ? T[K] | undefined : T[K] };

export type Job = Schemas["Job"];
export type JobEvent = Schemas["JobEvent"];
export type SearchHit = Schemas["SearchHit"];
export type Update = Schemas["Update"];
export type Thread = Schemas["Thread"];
export type Conversation = Schemas["Conversation"];
export type Caller = Schemas["Caller"];
export type SearchCount = Schemas["SearchCount"];
export type Feedback = Schemas["Feedback"];
export type PageFeedback = Schemas["PageFeedback"];
export type Evaluate = Schemas["Evaluate"];
export type EvaluatedAnswer = Schemas["EvaluatedAnswer"];

export interface Options {
  /** Address of the server, such as `https://docent.example.com`. */
  server: string;
  /** An assistant key (`dct_pub_…`) for questions and search, or on a server of yours a server key (`dct_srv_…`), which may name a reader's
   * groups; an admin key (`dct_adm_…`) for the rest. */
  key?: string | undefined;
  /** Goes in place of `key` with what readers do: questions, search, pages, and ratings. With both, one client does everything. */
  assistantKey?: string | undefined;
  /** Who the reader is, where documentation is private: the token that your own server signs, or what fetches one. A function is called for
   * each request, with `fresh` where the token before was refused. */
  readerToken?: string | ((about: { fresh: boolean }) => string | null | undefined | Promise<string | null | undefined>) | undefined;
  /** How often a request that may be repeated, or a broken stream, is tried again in a row; 5 where it is left out. */
  retries?: number | undefined;
  /** In place of the global one. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Sent with every request. */
  headers?: Record<string, string> | undefined;
}

export interface Call {
  signal?: AbortSignal | undefined;
}

export interface Idempotent extends Call {
  /** Names the request: a repeat with the same body gives the same job for 24 hours. One is made where it is left out, so that a request
   * whose answer was lost can be sent again. */
  idempotencyKey?: string | undefined;
}

export interface Wait extends Call {
  /** Milliseconds after which waiting ends with a WaitTimeoutError; without end where it is left out. */
  timeout?: number | undefined;
}

export interface Question extends Call {
  question: string;
  /** To continue a conversation: `threadId` of an earlier answer, and its `threadKey` where it had one. */
  threadId?: string | undefined;
  threadKey?: string | undefined;
  /** Who asks, for analytics: the id of a user; `anonymous` where it is left out. With a server key it is who the reader is. */
  fp?: string | undefined;
  filter?: Loose<NonNullable<Schemas["Filter"]>> | undefined;
  /** What the reader has selected. */
  context?: Schemas["AskContext"][] | undefined;
  /** The page that the reader is on: path or URL. */
  currentPath?: string | undefined;
  /** How many pages are looked at. */
  retrievalPageSize?: number | undefined;
  /** The form of the stream: server-sent events, or the lines of the deprecated version 1, for proxies that hold events back. */
  protocol?: "v2" | "v1" | undefined;
}

const firstTries = 2; // of a question that was not accepted yet

export class Docent {
  /** Every operation of the API by its path, with the types of the OpenAPI document. It throws what the methods throw, and leaves repeating a
   * POST to you, but for those with an Idempotency-Key. */
  readonly api: FetchClient<paths>;
  readonly #retries: number;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #readerToken: Options["readerToken"];
  readonly #assistantKey: string | undefined;

  constructor(options: Options) {
    if (!URL.canParse(options.server)) throw new TypeError(`server: ${JSON.stringify(options.server)} is not an address such as https://docent.example.com`);
    this.#retries = options.retries ?? 5;
    this.#fetch = options.fetch ?? ((request) => fetch(request));
    this.#readerToken = options.readerToken;
    this.#assistantKey = options.assistantKey;
    this.api = createFetchClient<paths>({
      baseUrl: options.server, credentials: "omit", fetch: (request) => this.#send(request),
      headers: { ...options.headers, ...(options.key && { Authorization: `Bearer ${options.key}` }) },
    });
  }

  /** send returns an answer that is a success. It repeats what can be repeated without doing anything twice. */
  async #send(request: Request): Promise<Response> {
    if (this.#assistantKey && request.url.includes("/discovery/")) request.headers.set("Authorization", `Bearer ${this.#assistantKey}`);
    const again = ["GET", "HEAD"].includes(request.method) || request.headers.has("Idempotency-Key");
    for (let tries = 0; ; ) {
      try {
        const response = await this.#identified(again ? request.clone() : request);
        if (response.ok || response.status === 304) return response;
        throw await apiError(response);
      } catch (error) {
        if (!again) throw connectionError(error, request.signal);
        await this.#pause(++tries, this.#retries, error, request.signal);
      }
    }
  }

  /** identified sends a request in the reader's name, where there is one. A token that is refused is fetched again, once. */
  async #identified(request: Request): Promise<Response> {
    const reader = this.#readerToken;
    if (!reader) return this.#fetch(request);
    for (let fresh = false; ; fresh = true) {
      const token = typeof reader === "function" ? await reader({ fresh }) : reader;
      const named = request.clone();
      if (token) named.headers.set("X-Docent-Reader", token);
      const response = await this.#fetch(named);
      if (fresh || typeof reader !== "function" || response.status !== 401) return response;
      const refused: unknown = await response.clone().json().catch(() => null);
      if (!(typeof refused === "object" && refused !== null && "code" in refused && refused.code === "reader_token")) return response;
    }
  }

  /** pause waits before a try. It throws the error where another try would not help. */
  async #pause(tries: number, most: number, error: unknown, signal: AbortSignal | undefined): Promise<void> {
    const lost = connectionError(error, signal);
    if (tries > most || !(lost instanceof ConnectionError || lost instanceof UnavailableError)) throw lost;
    const asked = lost instanceof ApiError ? (lost.retryAfter ?? 0) * 1000 : 0;
    const grown = Math.min(250 * 2 ** (tries - 1), 8000) * (0.5 + Math.random() / 2);
    await sleep(Math.max(grown, Math.min(asked, 30_000)), signal);
  }

  // The assistant.

  /** ask puts a question to a domain's assistant. Nothing is sent before the answer is read. */
  ask(domain: string, question: string | Question): Answer {
    const q = typeof question === "string" ? { question } : question;
    const { signal, protocol = "v2" } = q;
    const chat = crypto.randomUUID(); // by which an answer is found again whose first byte never came
    const message = crypto.randomUUID();
    const shared = {
      id: chat, fp: q.fp ?? "anonymous", threadId: q.threadId ?? null, threadKey: q.threadKey ?? null,
      ...(q.filter && { filter: q.filter as Schemas["Filter"] }), ...(q.context && { context: q.context }), ...(q.currentPath && { currentPath: q.currentPath }),
      ...(q.retrievalPageSize !== undefined && { retrievalPageSize: q.retrievalPageSize }),
    };
    const put = async (proof?: string) => {
      const header = proof ? { "X-Altcha": proof } : {};
      const call = { params: { path: { domain }, header }, parseAs: "stream" as const, ...(signal && { signal }) };
      if (protocol === "v1") {
        const body = { ...shared, messages: [{ id: message, role: "user" as const, content: q.question }] };
        return (await this.api.POST("/discovery/v1/assistant/{domain}/message", { ...call, body })).response;
      }
      const body = { ...shared, messages: [{ id: message, role: "user" as const, parts: [{ type: "text", text: q.question }] }] };
      return (await this.api.POST("/discovery/v2/assistant/{domain}/message", { ...call, body })).response;
    };
    const first = async () => {
      try {
        return await put();
      } catch (error) {
        if (!(error instanceof ForbiddenError && error.challenge)) throw error;
        const challenge = await data(this.api.GET("/discovery/v1/assistant/{domain}/challenge", { params: { path: { domain } }, ...signalOf(q) }));
        return put(await solve(challenge, signal));
      }
    };
    return new Answer({
      first,
      again: async (known) => {
        // Until a question is accepted, the newest answer of a thread that goes on is another one; it is put again under its id.
        const response = await this.#resume(domain, protocol, known.threadId || chat, known.threadKey ?? q.threadKey, q.fp, signal);
        return response.status === 204 ? first() : response;
      },
      read: protocol === "v1" ? readV1 : readV2,
      pause: (tries, error, accepted) => this.#pause(tries, accepted ? this.#retries : Math.min(firstTries, this.#retries), error, signal),
    });
  }

  /** resume reads the newest answer of a thread again from its start, and then live; null where there is none. */
  async resume(domain: string, threadId: string, options: Pick<Question, "fp" | "threadKey" | "protocol" | "signal"> = {}): Promise<Answer | null> {
    const { protocol = "v2", signal, threadKey } = options;
    const open = () => this.#resume(domain, protocol, threadId, threadKey, options.fp, signal);
    const response = await open();
    if (response.status === 204) return null;
    return new Answer({
      first: async () => response,
      again: open,
      read: protocol === "v1" ? readV1 : readV2,
      pause: (tries, error) => this.#pause(tries, this.#retries, error, signal),
    });
  }

  async #resume(domain: string, protocol: "v1" | "v2", id: string, threadKey: string | undefined, fp: string | undefined, signal: AbortSignal | undefined) {
    const more = { parseAs: "stream" as const, ...(signal && { signal }) };
    const header = threadKey ? { "X-Thread-Key": threadKey } : {};
    const query = fp ? { fp } : {};
    if (protocol === "v1") {
      return (await this.api.GET("/discovery/v1/assistant/{domain}/message", { params: { path: { domain }, query: { ...query, chatId: id }, header }, ...more })).response;
    }
    return (await this.api.GET("/discovery/v2/assistant/{domain}/message/{id}/stream", { params: { path: { domain, id }, query, header }, ...more })).response;
  }

  /** search finds the sections that fit a query best, at most one for each page. */
  search(domain: string, query: string | Schemas["Search"], call: Call = {}): Promise<SearchHit[]> {
    const body = typeof query === "string" ? { query } : query;
    return data(this.api.POST("/discovery/v1/search/{domain}", { params: { path: { domain } }, body, ...signalOf(call) }));
  }

  /** readPage returns a page of the documentation as Markdown. */
  readPage(domain: string, page: string | Schemas["ReadPage"], call: Call = {}): Promise<Schemas["Page"]> {
    const body = typeof page === "string" ? { path: page } : page;
    return data(this.api.POST("/discovery/v1/page/{domain}", { params: { path: { domain } }, body, ...signalOf(call) }));
  }

  /** rate says what a reader thinks of an answer. A later rating replaces an earlier one. */
  async rate(domain: string, answer: Pick<WholeAnswer, "threadId" | "messageId"> & { threadKey?: string | undefined },
    rating: Schemas["Rating"], options: Call & { comment?: string | undefined; fp?: string | undefined } = {}): Promise<void> {
    const { threadId, messageId, threadKey } = answer;
    await this.api.POST("/discovery/v1/feedback/{domain}", { params: { path: { domain } }, ...signalOf(options),
      body: { threadId, messageId, rating, threadKey: threadKey ?? null, comment: options.comment ?? null, ...(options.fp && { fp: options.fp }) } });
  }

  /** handOver hands a conversation over to people, at an answer, if the project takes messages for them. */
  async handOver(domain: string, answer: Pick<WholeAnswer, "threadId" | "messageId"> & { threadKey?: string | undefined },
    contact: Pick<Schemas["HandOver"], "message" | "name" | "email" | "public">, options: Call & { fp?: string | undefined } = {}): Promise<void> {
    const { threadId, messageId, threadKey } = answer;
    await this.api.POST("/discovery/v1/contact/{domain}", { params: { path: { domain } }, ...signalOf(options),
      body: { threadId, messageId, ...contact, threadKey: threadKey ?? null, ...(options.fp && { fp: options.fp }) } });
  }

  // The agent.

  /** createJob gives the agent an instruction. The job is on disk when this returns. */
  createJob(projectId: string, job: Schemas["CreateJob"], call: Idempotent = {}): Promise<Job> {
    return data(this.api.POST("/v2/agent/{projectId}/job", { params: { path: { projectId }, header: idempotency(call) }, body: job, ...signalOf(call) }));
  }

  /** followUp gives a job one more instruction. */
  followUp(projectId: string, id: string, prompt: string, call: Idempotent = {}): Promise<Job> {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/message", { params: { path: { projectId, id }, header: idempotency(call) }, body: { prompt }, ...signalOf(call) }));
  }

  readJob(projectId: string, id: string, call: Call = {}): Promise<Job> {
    return data(this.api.GET("/v2/agent/{projectId}/job/{id}", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }

  /** cancelJob stops an active job. */
  cancelJob(projectId: string, id: string, call: Call = {}): Promise<Job> {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/cancel", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }

  /** archiveJob puts a job away. Its branch and pull request stay. */
  archiveJob(projectId: string, id: string, call: Call = {}): Promise<Job> {
    return data(this.api.POST("/v2/agent/{projectId}/job/{id}/archive", { params: { path: { projectId, id } }, ...signalOf(call) }));
  }

  /** jobs yields a project's jobs, newest first. */
  jobs(projectId: string, filter: Loose<Omit<Query<"listJobs">, "cursor" | "limit">> & Call = {}): AsyncGenerator<Job> {
    const { signal, ...query } = filter;
    return pages((cursor) => data(this.api.GET("/v2/agent/{projectId}/jobs", { params: { path: { projectId }, query: defined({ ...query, limit: 100, cursor }) }, ...signalOf({ signal }) })),
      (page) => page.jobs);
  }

  /** jobEvents follows a job: it yields the entries of its log beyond `after`, and returns the job when it has ended. A stream that breaks is
   * taken up where it was. */
  async *jobEvents(projectId: string, id: string, options: Call & { after?: number | undefined } = {}): AsyncGenerator<JobEvent, Job> {
    let after = options.after ?? 0;
    for (let tries = 0; ; ) {
      try {
        const { response } = await this.api.GET("/v2/agent/{projectId}/job/{id}/events", { parseAs: "stream", ...signalOf(options),
          params: { path: { projectId, id }, header: { "Last-Event-ID": after } } });
        if (response.status === 204) return await this.readJob(projectId, id, options);
        for await (const { id: at, event, data: text } of events(response)) {
          tries = 0;
          if (event === "end") return JSON.parse(text) as Job;
          if (at === undefined || at === "") continue; // early events that are not kept any more
          after = Number(at);
          yield JSON.parse(text) as JobEvent;
        }
        throw new ConnectionError("the job's log broke off");
      } catch (error) {
        await this.#pause(++tries, this.#retries, error, options.signal);
      }
    }
  }

  /** waitForJob returns the job when it has ended, whichever way: look at its `status` and `outcome`. */
  async waitForJob(projectId: string, id: string, options: Wait = {}): Promise<Job> {
    const until = deadline(options, `job ${id} has not ended`);
    for (;;) {
      const seconds = Math.min(30, Math.max(1, Math.ceil(until.left() / 1000)));
      const job = await until.run((signal) => data(this.api.GET("/v2/agent/{projectId}/job/{id}",
        { params: { path: { projectId, id }, query: { wait: seconds } }, signal })));
      if (job.status !== "active") return job;
    }
  }

  // Keeping the documentation up to date.

  /** startUpdate starts re-indexing the documentation, and returns the id of the update. */
  async startUpdate(projectId: string, call: Call = {}): Promise<string> {
    return (await data(this.api.POST("/v1/project/update/{projectId}", { params: { path: { projectId } }, ...signalOf(call) }))).statusId;
  }

  updateStatus(statusId: string, call: Call = {}): Promise<Update> {
    return data(this.api.GET("/v1/project/update-status/{statusId}", { params: { path: { statusId } }, ...signalOf(call) }));
  }

  /** waitForUpdate returns the update when it has ended: look at its `status`. */
  async waitForUpdate(statusId: string, options: Wait = {}): Promise<Update> {
    const until = deadline(options, `update ${statusId} has not ended`);
    for (let pause = 100; ; pause = Math.min(2 * pause, 3000)) {
      const update = await until.run((signal) => this.updateStatus(statusId, { signal }));
      if (update.status === "success" || update.status === "failure") return update;
      await until.run((signal) => sleep(Math.min(pause, until.left()), signal));
    }
  }

  // Analytics. openapi-fetch leaves out of its types what is always null; the document has it.

  /** conversations yields questions and their answers, newest first. */
  conversations(projectId: string, filter: Period = {}): AsyncGenerator<Conversation> {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/assistant", this.#listing(projectId, filter, cursor, 1000))), (page) => page.conversations as Conversation[]);
  }

  readThread(projectId: string, threadId: string, call: Call = {}): Promise<Thread> {
    return data(this.api.GET("/v1/analytics/{projectId}/assistant/threads/{threadId}", { params: { path: { projectId, threadId } }, ...signalOf(call) }));
  }

  /** callers yields who asked, most questions first. */
  callers(projectId: string, filter: Period = {}): AsyncGenerator<Caller> {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/assistant/caller-stats", this.#listing(projectId, filter, cursor))), (page) => page.callers);
  }

  /** searches yields what was searched for, most frequent first. */
  searches(projectId: string, filter: Period = {}): AsyncGenerator<SearchCount> {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/searches", this.#listing(projectId, filter, cursor))), (page) => page.searches as SearchCount[]);
  }

  /** feedback yields what readers think of answers, newest first. */
  feedback(projectId: string, filter: Period = {}): AsyncGenerator<Feedback> {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/feedback", this.#listing(projectId, filter, cursor))), (page) => page.feedback as Feedback[]);
  }

  /** pageFeedback yields how answers were rated, by the pages that they cite. */
  pageFeedback(projectId: string, filter: Period = {}): AsyncGenerator<PageFeedback> {
    return pages((cursor) => data(this.api.GET("/v1/analytics/{projectId}/feedback/by-page", this.#listing(projectId, filter, cursor))), (page) => page.feedback);
  }

  /** evaluate asks the questions of one conversation, to judge the answers. Nothing of it stays, and it counts as no reader's. */
  async evaluate(projectId: string, conversation: Evaluate, call: Call = {}): Promise<EvaluatedAnswer[]> {
    return (await data(this.api.POST("/v1/evaluation/{projectId}", { params: { path: { projectId } }, body: conversation, ...signalOf(call) }))).answers;
  }

  #listing(projectId: string, { signal, dateFrom, dateTo }: Period, cursor: string | undefined, limit = 100) {
    return { params: { path: { projectId }, query: defined({ dateFrom, dateTo, limit, cursor }) }, ...signalOf({ signal }) };
  }
}

/** Between which times to look: RFC 3339, or YYYY-MM-DD for the beginning of a day in UTC. The end is not part of it. */
export interface Period extends Call {
  dateFrom?: string | undefined;
  dateTo?: string | undefined;
}

/** solve does the proof of work that a project may ask for with each question. */
async function solve(challenge: Schemas["Challenge"], signal: AbortSignal | undefined): Promise<string> {
  const { algorithm, maxnumber, salt, signature } = challenge;
  const encoder = new TextEncoder();
  for (let number = 0; number <= maxnumber; number++) {
    signal?.throwIfAborted();
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(salt + number)));
    if (Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("") === challenge.challenge) {
      return btoa(JSON.stringify({ algorithm, challenge: challenge.challenge, number, salt, signature }));
    }
  }
  throw new DocentError("the server's challenge has no solution");
}

/** data is the body of an answer. Refusals were thrown before. */
async function data<T>(call: Promise<{ data?: T; response: Response }>): Promise<NonNullable<T>> {
  const { data: body, response } = await call;
  if (body === undefined || body === null) throw new ApiError(response.status, { message: "the server's answer has no body" }, response.headers);
  return body;
}

const signalOf = ({ signal }: Call) => (signal ? { signal } : {});
const idempotency = (call: Idempotent) => ({ "Idempotency-Key": call.idempotencyKey ?? crypto.randomUUID() });

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };
/** defined leaves out what is undefined. */
function defined<T extends object>(query: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as Partial<Defined<T>>;
}

async function* pages<Page extends { nextCursor: string | null }, Item>(read: (cursor: string | undefined) => Promise<Page>,
  items: (page: Page) => Item[]): AsyncGenerator<Item> {
  for (let cursor: string | undefined; ; ) {
    const page = await read(cursor);
    yield* items(page);
    if (!page.nextCursor) return;
    cursor = page.nextCursor;
  }
}

/** connectionError gives what fetch throws a type of its own; what the caller stopped stays what it is. */
function connectionError(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (!(error instanceof TypeError)) return error;
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return new ConnectionError(`the connection failed (${error.message}${cause})`, { cause: error });
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** deadline bounds what is waited for, and says what it was. */
function deadline(options: Wait, what: string) {
  const ends = options.timeout === undefined ? Infinity : Date.now() + options.timeout;
  const left = () => Math.max(0, ends - Date.now());
  return {
    left,
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const late = new WaitTimeoutError(`${what} after ${options.timeout} ms`);
      if (left() === 0) throw late;
      const stop = new AbortController();
      const passOn = () => stop.abort(options.signal?.reason);
      if (options.signal?.aborted) passOn();
      options.signal?.addEventListener("abort", passOn, { once: true });
      const timer = Number.isFinite(ends) ? setTimeout(() => stop.abort(late), left()) : undefined;
      try {
        return await work(stop.signal);
      } finally {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", passOn);
      }
    },
  };
}
