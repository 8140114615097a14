// The public API, as the widget uses it. Requests and answers have the types of the OpenAPI document.
import type { components } from "../../../api/typescript/src/schema";
import type { Config, Snippet } from "./config";

type Schemas = components["schemas"];
export type Hit = Schemas["SearchHit"];

export interface Source {
  url: string;
  title?: string;
}

/** A Card is a section to go on with, and what it says in a line or two. */
export interface Card extends Source {
  excerpt: string;
}

/** A Refusal is an answer of the API that is no success, in words for the reader. After is when to come back, in seconds. */
export class Refusal extends Error {
  constructor(message: string, readonly status: number, readonly code = "", readonly after = 0) {
    super(message);
  }
}

interface Question {
  question: string;
  id: string;
  chat: string;
  threadId?: string;
  threadKey?: string;
  about?: Snippet;
  again?: boolean;
  messageId?: string;
}

type Part =
  | { type: "start"; messageId?: string; messageMetadata?: { threadId?: string; threadKey?: string } }
  | { type: "text-delta"; delta: string }
  | { type: "source-url"; url: string; title?: string; providerMetadata?: { docent?: { excerpt?: string } } }
  | { type: "error"; errorText: string }
  | { type: "finish" };

/** What comes of one question while it is answered. */
export interface Progress {
  threadId?: string;
  threadKey?: string;
  messageId?: string;
  text: string;
  sources: Source[];
  cards: Card[];
}

declare const PROOF: string; // the file of the solver, with its hash

const goodFor = 8 * 60_000; // milliseconds that a solution is kept; the server takes it for ten minutes

export class Api {
  #proof?: { at: number; solution: Promise<string> };

  constructor(readonly config: Config, readonly base: string) {}

  /** prepare begins the proof of work for the next question, where one is asked for: while the reader types. */
  prepare() {
    if (this.config.proof && !(Date.now() - (this.#proof?.at ?? 0) < goodFor)) this.#proof = { at: Date.now(), solution: this.#solve().catch(() => "") };
  }

  async #solve(): Promise<string> {
    const [challenge, solver] = await Promise.all([
      fetch(this.#url("v1", `assistant/${encodeURIComponent(this.config.domain)}/challenge`), { headers: this.#headers(), credentials: "omit" }),
      import(new URL(PROOF, this.base).href) as Promise<typeof import("./proof")>,
    ]);
    return challenge.ok ? solver.solve(await challenge.json()) : "";
  }

  #url(version: string, what: string) {
    return `${this.config.server}/discovery/${version}/${what}`;
  }

  #headers(more: Record<string, string> = {}) {
    return { "Content-Type": "application/json", ...(this.config.key && { Authorization: `Bearer ${this.config.key}` }), ...more };
  }

  /** send sends a request in the reader's name, where the site has one. A token that is refused is fetched again, once. */
  async #send(url: string, init: RequestInit, headers: Record<string, string> = {}) {
    for (let fresh = false; ; fresh = true) {
      const token = await this.config.readerToken(fresh);
      const response = await fetch(url, { ...init, credentials: "omit", headers: this.#headers({ ...headers, ...(token && { "X-Docent-Reader": token }) }) });
      if (response.ok) return response;
      const error = await refusal(response);
      if (fresh || error.code !== "reader_token") throw error;
    }
  }

  #post(url: string, body: unknown, signal?: AbortSignal, headers = {}) {
    return this.#send(url, { method: "POST", body: JSON.stringify(body), signal }, headers);
  }

  #filter() {
    return this.config.version ? { filter: { version: this.config.version } } : {};
  }

  async search(query: string, signal: AbortSignal): Promise<Hit[]> {
    const response = await this.#post(this.#url("v1", `search/${encodeURIComponent(this.config.domain)}`),
      { query, pageSize: 8, currentPath: location.pathname, ...this.#filter() } satisfies Schemas["Search"], signal);
    return response.json();
  }

  /** ask puts a question. A message that comes again under its id is not asked twice. */
  async ask(q: Question, signal: AbortSignal) {
    for (let again = false; ; again = true) {
      this.prepare();
      const proof = this.#proof;
      this.#proof = undefined;
      const solution = await proof?.solution;
      try {
        return await this.#put(q, signal, solution ? { "X-Altcha": solution } : {});
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (error.status !== 403) this.#proof = proof; // it was not used
        if (again || error.code !== "proof_of_work") throw error;
        this.config.proof = true;
      }
    }
  }

  #put(q: Question, signal: AbortSignal, proof: Record<string, string>) {
    return this.#post(this.#url("v2", `assistant/${encodeURIComponent(this.config.domain)}/message`), {
      id: q.chat, fp: this.config.user || "anonymous", threadId: q.threadId, currentPath: location.pathname, ...this.#filter(),
      ...(q.about && { context: [q.about] }), ...(q.again && { trigger: "regenerate-message", messageId: q.messageId }),
      messages: [{ id: q.id, role: "user", parts: [{ type: "text", text: q.question }] }],
    } satisfies Schemas["AskV2"], signal, { ...proof, ...(q.threadKey && { "X-Thread-Key": q.threadKey }) });
  }

  /** resume gets the newest answer of a thread or chat from its start; null where there is none. */
  async resume(id: string, threadKey: string | undefined, signal: AbortSignal): Promise<Response | null> {
    const fp = encodeURIComponent(this.config.user || "anonymous");
    const response = await this.#send(this.#url("v2", `assistant/${encodeURIComponent(this.config.domain)}/message/${encodeURIComponent(id)}/stream?fp=${fp}`),
      { signal }, threadKey ? { "X-Thread-Key": threadKey } : {});
    return response.status === 204 ? null : response;
  }

  async rate(v: { threadId: string; threadKey?: string; messageId: string; rating: "up" | "down"; comment?: string }) {
    await this.#post(this.#url("v1", `feedback/${encodeURIComponent(this.config.domain)}`), { fp: this.config.user || "anonymous", ...v } satisfies Schemas["RateAnswer"]);
  }

  /** handOver hands a conversation over to people. */
  async handOver(v: Omit<Schemas["HandOver"], "fp">) {
    await this.#post(this.#url("v1", `contact/${encodeURIComponent(this.config.domain)}`), { fp: this.config.user || "anonymous", ...v } satisfies Schemas["HandOver"]);
  }
}

async function refusal(response: Response) {
  const body = await response.json().catch(() => ({}));
  return new Refusal(typeof body.message === "string" ? body.message : `${response.status}`, response.status, body.code, Number(response.headers.get("Retry-After")) || 0);
}

/** Broken says that a stream ended before its answer was complete. */
export class Broken extends Error {}

/** read hands over how far an answer is, each time that something came, and returns when it is complete. */
export async function read(response: Response, show: (p: Progress) => void): Promise<void> {
  const p: Progress = { text: "", sources: [], cards: [], threadId: response.headers.get("X-Thread-Id") ?? undefined,
    threadKey: response.headers.get("X-Thread-Key") ?? undefined };
  show(p);
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const chunk = await reader.read();
      if (chunk.done) throw new Broken();
      const events = (rest + decoder.decode(chunk.value, { stream: true })).split("\n\n");
      rest = events.pop()!;
      for (const event of events) {
        if (!event.startsWith("data: {")) continue; // a comment that keeps the connection open, or [DONE]
        const part = JSON.parse(event.slice(6)) as Part;
        if (part.type === "start") {
          p.messageId = part.messageId;
          p.threadId = part.messageMetadata?.threadId ?? p.threadId;
        } else if (part.type === "text-delta") p.text += part.delta;
        else if (part.type === "source-url") {
          const { url, title, providerMetadata } = part;
          const excerpt = providerMetadata?.docent?.excerpt;
          if (excerpt) p.cards.push({ url, title, excerpt });
          else p.sources.push({ url, title });
        }
        else if (part.type === "error") throw new Refusal(part.errorText, 200);
        else if (part.type === "finish") return show(p);
      }
      show(p);
    }
  } catch (error) {
    if (error instanceof Refusal || (error as Error).name === "AbortError") throw error;
    throw new Broken();
  } finally {
    reader.cancel().catch(() => {});
  }
}
