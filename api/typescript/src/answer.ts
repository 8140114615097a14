import { AnswerError, ConnectionError } from "./errors.js";
import type { Card, Source, WirePart } from "./stream.js";

/** A question that the documentation answers too, where the project offers them. */
export interface Suggestion {
  text: string;
  url: string;
}

/** What comes of an answer, in its order. `restart` says that what was shown is void: the answer starts over, since it was lost with the
 * server that wrote it. */
export type AnswerPart =
  | { type: "start"; threadId: string; threadKey: string | undefined; messageId: string }
  | { type: "text"; text: string }
  | { type: "source"; source: Source }
  | { type: "restart" }
  | { type: "finish"; answer: WholeAnswer };

export interface WholeAnswer {
  /** Send it with the next question to continue the conversation. */
  threadId: string;
  /** The thread's secret; it comes only with the answer that opens the thread. */
  threadKey: string | undefined;
  /** Names the answer in a rating. */
  messageId: string;
  text: string;
  /** The pages that it is made from; `[1]` in the text is the first one. */
  sources: Source[];
  cards: Card[];
  suggestions: Suggestion[];
  /** The model that answered in place of the project's own. */
  fallbackModel: string | undefined;
}

const beginning = "\n\n```suggestions\n";

/** shown is how much of a text can be shown already: not the block of suggestions, nor what may become its beginning. */
function shown(text: string, finished: boolean): number {
  const at = text.indexOf(beginning);
  if (at >= 0) return at;
  for (let n = finished ? 0 : Math.min(text.length, beginning.length - 1); n > 0; n--) {
    if (text.endsWith(beginning.slice(0, n))) return text.length - n;
  }
  return text.length;
}

export interface Connections {
  /** first puts the question; again gets its answer from the start, by the thread where it is known. Both end with an open stream. */
  first(): Promise<Response>;
  again(known: { threadId: string; threadKey: string | undefined }): Promise<Response>;
  read(response: Response): AsyncIterable<WirePart>;
  /** pause waits before the try of that number. It throws the error where no other try may help, or it was tried often enough. */
  pause(tries: number, error: unknown, accepted: boolean): Promise<void>;
}

/** An Answer is asked for when it is first read. Iterate it for its parts as they come, or await `whole()`; not both. A connection that
 * breaks is taken up again, and each part comes once. */
export class Answer implements AsyncIterable<AnswerPart> {
  #parts: AsyncGenerator<AnswerPart> | undefined;

  constructor(private readonly connections: Connections) {}

  [Symbol.asyncIterator](): AsyncIterator<AnswerPart> {
    if (this.#parts) throw new TypeError("an answer can be read once");
    return (this.#parts = follow(this.connections));
  }

  /** whole reads the answer to its end. */
  async whole(): Promise<WholeAnswer> {
    for await (const part of this) if (part.type === "finish") return part.answer;
    throw new ConnectionError("the stream ended before the answer was complete");
  }

  /** text yields nothing but the text. It fails if the answer has to start over after some of it was handed over. */
  async *text(): AsyncGenerator<string> {
    for await (const part of this) {
      if (part.type === "text") yield part.text;
      if (part.type === "restart") throw new ConnectionError("the server lost the answer and starts over: read the answer's parts to handle that");
    }
  }
}

async function* follow(c: Connections): AsyncGenerator<AnswerPart> {
  let known = { threadId: "", threadKey: undefined as string | undefined };
  let messageId = "";
  let accepted = false; // the question is on the server's disk
  let started = false;
  let given = { text: "", sources: 0 }; // what the caller has
  for (let tries = 0; ; ) {
    let text = ""; // of this connection
    const sources: Source[] = [];
    const cards: Card[] = [];
    let progress = false;
    try {
      const response = tries === 0 ? await c.first() : await c.again(known);
      accepted = true;
      known = { threadId: response.headers.get("X-Thread-Id") ?? known.threadId, threadKey: response.headers.get("X-Thread-Key") ?? known.threadKey };
      const catchUp = function* (finished: boolean): Generator<AnswerPart> {
        const upTo = text.slice(0, shown(text, finished));
        const differs = finished ? upTo !== given.text && !upTo.startsWith(given.text) : !upTo.startsWith(given.text) && !given.text.startsWith(upTo);
        if (differs || (finished && sources.length < given.sources)) {
          given = { text: "", sources: 0 };
          yield { type: "restart" };
        }
        for (; given.sources < sources.length; given.sources++) yield { type: "source", source: sources[given.sources]! };
        if (upTo.length > given.text.length) {
          const more = upTo.slice(given.text.length);
          given.text = upTo;
          progress = true;
          yield { type: "text", text: more };
        }
      };
      for await (const part of c.read(response)) {
        switch (part.type) {
          case "start":
            messageId = part.messageId;
            known = { threadId: part.threadId ?? known.threadId, threadKey: part.threadKey ?? known.threadKey };
            if (!started) yield { type: "start", ...known, messageId };
            started = true;
            break;
          case "text":
            text += part.text;
            yield* catchUp(false);
            break;
          case "source":
            sources.push(part.source);
            yield* catchUp(false);
            break;
          case "card":
            cards.push(part.card);
            break;
          case "error":
            throw new AnswerError(part.message);
          case "finish":
            yield* catchUp(true);
            known.threadId = part.threadId ?? known.threadId;
            yield { type: "finish", answer: { ...known, messageId, text: given.text, sources, cards, suggestions: suggested(text),
              fallbackModel: part.fallback ? part.model : undefined } };
            return;
        }
      }
      throw new ConnectionError("the stream ended before the answer was complete");
    } catch (error) {
      tries = progress ? 1 : tries + 1;
      await c.pause(tries, error, accepted);
    }
  }
}

function suggested(text: string): Suggestion[] {
  const at = text.indexOf(beginning);
  if (at < 0) return [];
  return Array.from(text.slice(at).matchAll(/\(([^)]*)\)\[([^\]]*)\]/g), (m) => ({ text: m[1]!, url: m[2]! }));
}
