// One reader's conversation: what was asked and answered, where it goes on, and how it survives a reload and a dead server.
import { Api, Broken, type Card, type Progress, read, Refusal, type Source } from "./api";
import type { Config, Snippet } from "./config";

export interface Turn {
  id: string; // of the message
  question: string;
  about?: Snippet;
  text: string;
  sources: Source[];
  cards?: Card[];
  suggestions: { text: string; url: string }[];
  state: "asking" | "writing" | "reconnecting" | "done" | "stopped" | "failed";
  problem?: string;
  messageId?: string; // of the answer
  rating?: "up" | "down";
  contacted?: boolean; // people have it
}

export interface Chat {
  id: string;
  threadId?: string;
  threadKey?: string;
  turns: Turn[];
  at: number;
}

const most = 20; // conversations kept
const beginning = "\n\n```suggestions\n";
const pauses = [250, 500, 1000, 2000, 3000, 5000];

const newId = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
const wait = (ms: number, signal: AbortSignal) => new Promise<void>((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); reject(new DOMException("stopped", "AbortError")); }, { once: true });
});

/** A Store keeps conversations in the browser: for as long as the tab is open, or until they are removed. */
export class Store {
  #place: string;
  constructor(readonly config: Config) {
    this.#place = `docent:${config.domain}`;
  }

  #read<T>(storage: () => Storage, name: string): T | undefined {
    try {
      return JSON.parse(storage().getItem(this.#place + name) ?? "null") ?? undefined;
    } catch {
      return undefined; // blocked, or written by somebody else
    }
  }

  #write(storage: () => Storage, name: string, value: unknown) {
    try {
      if (value === undefined) storage().removeItem(this.#place + name);
      else storage().setItem(this.#place + name, JSON.stringify(value));
    } catch {
      // Blocked or full: the conversation lives as long as the page.
    }
  }

  get chat(): Chat | undefined {
    return this.#read(() => sessionStorage, ":chat");
  }

  set chat(c: Chat | undefined) {
    this.#write(() => sessionStorage, ":chat", c);
    if (this.config.history && c && c.turns.length > 0) {
      this.#write(() => localStorage, ":history", [c, ...this.history.filter((h) => h.id !== c.id)].slice(0, most));
    }
  }

  get history(): Chat[] {
    return this.config.history ? this.#read<Chat[]>(() => localStorage, ":history") ?? [] : [];
  }

  /** searches are those that led to a page, the newest first. They last as long as conversations do. */
  get searches(): string[] {
    return this.#read<string[]>(this.#lasting, ":searches") ?? [];
  }

  searched(query: string) {
    this.#write(this.#lasting, ":searches", [query, ...this.searches.filter((q) => q !== query)].slice(0, 5));
  }

  #lasting = () => (this.config.history ? localStorage : sessionStorage);

  forget() {
    this.#write(this.#lasting, ":searches", undefined);
    this.#write(() => localStorage, ":history", undefined);
    this.#write(() => sessionStorage, ":chat", undefined);
  }

  /** open remembers that the dialog is open, so that a reload opens it again. */
  set open(is: boolean) {
    this.#write(() => sessionStorage, ":open", is ? true : undefined);
  }
}

/** A Conversation asks, follows the answers, and comes back to one that broke off. */
export class Conversation {
  chat: Chat;
  #stopper?: AbortController;

  constructor(readonly api: Api, readonly store: Store, private readonly changed: () => void) {
    this.chat = store.chat ?? this.#empty();
  }

  #empty(): Chat {
    return { id: newId(), turns: [], at: Date.now() };
  }

  get busy() {
    return this.#stopper !== undefined;
  }

  /** begin starts anew, or goes on with a conversation of before. */
  begin(chat?: Chat) {
    this.stop();
    this.chat = chat ?? this.#empty();
    this.store.chat = this.chat.turns.length ? this.chat : undefined;
    this.changed();
  }

  stop() {
    this.#stopper?.abort();
  }

  ask(question: string, about?: Snippet) {
    if (this.busy || !question.trim()) return;
    const turn: Turn = { id: newId(), question: question.trim(), about, text: "", sources: [], suggestions: [], state: "asking" };
    this.chat.turns.push(turn);
    void this.#follow(turn, (signal) => this.#put(turn, signal));
  }

  /** again asks for another answer to the last question. */
  again() {
    const turn = this.chat.turns.at(-1);
    if (this.busy || !turn || !this.chat.threadId) return;
    const messageId = turn.messageId;
    Object.assign(turn, { text: "", sources: [], cards: [], suggestions: [], state: "asking", rating: undefined, contacted: undefined, problem: undefined });
    void this.#follow(turn, (signal) => this.#put(turn, signal, messageId));
  }

  /** takeUp goes on with an answer that was being written when the page was left. */
  takeUp() {
    const turn = this.chat.turns.at(-1);
    if (!turn || this.busy || !["asking", "writing", "reconnecting"].includes(turn.state)) return;
    turn.state = "reconnecting";
    void this.#follow(turn, (signal) => this.#back(turn, signal));
  }

  async #put(turn: Turn, signal: AbortSignal, again?: string): Promise<Response> {
    try {
      return await this.api.ask({ question: turn.question, id: turn.id, chat: this.chat.id, threadId: this.chat.threadId, threadKey: this.chat.threadKey,
        about: turn.about, again: again !== undefined, messageId: again }, signal);
    } catch (error) {
      // The thread is gone, or of another reader: who has signed in or out goes on in a new one.
      if (!(error instanceof Refusal && error.status === 404 && this.chat.threadId)) throw error;
      this.chat.threadId = this.chat.threadKey = undefined;
      return this.#put(turn, signal);
    }
  }

  /** back finds the answer again, whichever way it was lost: the thread has it, or the question never came through. */
  async #back(turn: Turn, signal: AbortSignal): Promise<Response> {
    // Before its own answer has begun, the newest one of a thread that goes on is that of the question before.
    const begun = turn.messageId || !this.chat.threadId;
    const stream = begun ? await this.api.resume(this.chat.threadId ?? this.chat.id, this.chat.threadKey, signal) : null;
    return stream ?? this.#put(turn, signal); // under its id: what was accepted is not asked twice
  }

  async #follow(turn: Turn, first: (signal: AbortSignal) => Promise<Response>) {
    const stopper = (this.#stopper = new AbortController());
    const { signal } = stopper;
    this.changed();
    for (let tries = 0, put = true; ; ) {
      try {
        const response = await (put ? first(signal) : this.#back(turn, signal));
        put = false;
        await read(response, (p) => {
          if (p.text) tries = 0;
          this.#show(turn, p);
        });
        turn.state = "done";
        break;
      } catch (error) {
        // Who is told to wait for a moment waits, and asks again: nothing was accepted.
        const after = error instanceof Refusal && (error.status === 503 || error.status === 429 && error.after > 0 && error.after <= 60) ? error.after || 1 : 0;
        const lost = error instanceof Broken || error instanceof TypeError || after > 0;
        put &&= after > 0;
        if (signal.aborted) turn.state = "stopped";
        else if (lost && tries < 40) {
          turn.state = "reconnecting";
          this.changed();
          const ms = Math.max(pauses[Math.min(tries++, pauses.length - 1)]!, after * 1000);
          if (await wait(ms, signal).then(() => true, () => false)) continue;
          turn.state = "stopped";
        } else {
          turn.state = "failed";
          turn.problem = lost ? "" : (error as Error).message;
        }
        break;
      }
    }
    if (this.#stopper === stopper) this.#stopper = undefined;
    this.#keep();
    this.changed();
  }

  #show(turn: Turn, p: Progress) {
    this.chat.threadId = p.threadId ?? this.chat.threadId;
    this.chat.threadKey = p.threadKey ?? this.chat.threadKey;
    const known = turn.messageId;
    turn.messageId = p.messageId ?? turn.messageId;
    const at = p.text.indexOf(beginning);
    const text = at < 0 ? p.text : p.text.slice(0, at);
    // An answer that is sent again from its start takes the place of what is shown once it has come as far.
    if (turn.state !== "reconnecting" || text.length >= turn.text.length) {
      turn.text = text;
      turn.sources = p.sources.slice();
      turn.cards = p.cards.slice();
      turn.state = "writing";
    }
    turn.suggestions = at < 0 ? [] : Array.from(p.text.slice(at).matchAll(/\(([^)]*)\)\[([^\]]*)\]/g), (m) => ({ text: m[1]!, url: m[2]! }));
    if (known !== turn.messageId) this.#keep(); // a reload finds it from here on
    this.changed();
  }

  #keep() {
    this.chat.at = Date.now();
    this.store.chat = this.chat;
  }

  async rate(turn: Turn, rating: "up" | "down", comment?: string) {
    if (!this.chat.threadId || !turn.messageId) return;
    await this.api.rate({ threadId: this.chat.threadId, threadKey: this.chat.threadKey, messageId: turn.messageId, rating, comment });
    turn.rating = rating;
    this.#keep();
    this.changed();
  }

  /** handOver hands the conversation over to people. */
  async handOver(turn: Turn, contact: { message: string; name: string; email: string; public: boolean }) {
    await this.api.handOver({ threadId: this.chat.threadId!, threadKey: this.chat.threadKey, messageId: turn.messageId!, ...contact });
    turn.contacted = true;
    this.#keep();
    this.changed();
  }
}
