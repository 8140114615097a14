// The two forms in which an answer is streamed, read into the same parts.
import { createParser } from "eventsource-parser";

export interface Source {
  url: string;
  title: string;
}

/** A section to go on with, which the answer was not made from. */
export interface Card extends Source {
  /** What it says in a line or two, as plain text. */
  excerpt: string;
}

interface WireSource {
  url: string;
  title?: string;
  providerMetadata?: { docent?: { excerpt?: string } };
}

const source = ({ url, title = "", providerMetadata }: WireSource): WirePart => {
  const excerpt = providerMetadata?.docent?.excerpt;
  return excerpt ? { type: "card", card: { url, title, excerpt } } : { type: "source", source: { url, title } };
};

/** What one connection says of an answer. */
export type WirePart =
  | { type: "start"; messageId: string; threadId?: string; threadKey?: string }
  | { type: "text"; text: string }
  | { type: "source"; source: Source }
  | { type: "card"; card: Card }
  | { type: "finish"; threadId?: string; threadKey?: string; model?: string; fallback?: boolean }
  | { type: "error"; message: string };

interface Metadata {
  threadId?: string;
  threadKey?: string;
  model?: string;
  fallback?: boolean;
}

/** chunks yields a response's text as it comes. Leaving the loop closes the connection. */
async function* chunks(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

export interface ServerEvent {
  id: string | undefined;
  event: string | undefined;
  data: string;
}

/** events reads server-sent events. One that the connection cut off is left out. */
export async function* events(response: Response): AsyncGenerator<ServerEvent> {
  let queue: ServerEvent[] = [];
  const parser = createParser({ onEvent: ({ id, event, data }) => queue.push({ id, event, data }) });
  for await (const chunk of chunks(response)) {
    parser.feed(chunk);
    const ready = queue;
    queue = [];
    yield* ready;
  }
}

const metadata = (m: Metadata | undefined) => ({
  ...(m?.threadId && { threadId: m.threadId }), ...(m?.threadKey && { threadKey: m.threadKey }), ...(m?.model && { model: m.model }),
  ...(m?.fallback && { fallback: true }),
});

/** readV2 reads the UI message stream of version 2. Types that it does not know are passed over: the protocol grows. */
export async function* readV2(response: Response): AsyncGenerator<WirePart> {
  for await (const { data } of events(response)) {
    if (data === "[DONE]") return;
    const part = JSON.parse(data);
    switch (part.type) {
      case "start":
        yield { type: "start", messageId: part.messageId ?? "", ...metadata(part.messageMetadata) };
        break;
      case "text-delta":
        yield { type: "text", text: part.delta };
        break;
      case "source-url":
        yield source(part);
        break;
      case "error":
        yield { type: "error", message: part.errorText };
        return;
      case "finish":
        yield { type: "finish", ...metadata(part.messageMetadata) };
        return;
    }
  }
}

async function* lines(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks(response)) {
    const whole = (rest + chunk).split("\n");
    rest = whole.pop()!;
    yield* whole;
  }
}

/** readV1 reads the data stream of version 1: a line for each part, `code:json`. */
export async function* readV1(response: Response): AsyncGenerator<WirePart> {
  let end: Metadata = {};
  for await (const line of lines(response)) {
    if (line[1] !== ":") continue; // an empty line keeps the connection open
    const value = JSON.parse(line.slice(2));
    switch (line[0]) {
      case "f":
        yield { type: "start", messageId: value.messageId };
        break;
      case "0":
        yield { type: "text", text: value };
        break;
      case "h":
        if (value.sourceType === "url") yield source(value);
        break;
      case "3":
        yield { type: "error", message: value };
        return;
      case "2":
      case "8":
        for (const item of value) if (item?.type === "finish") end = { ...end, ...item };
        break;
      case "d":
        yield { type: "finish", ...metadata({ ...end, ...value }) };
        return;
    }
  }
}
