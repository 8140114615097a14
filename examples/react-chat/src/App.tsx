import { type FormEvent, useEffect, useRef, useState } from "react";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, generateId, type UIMessage } from "ai";

// What the page talks to. The query of the page's address may say otherwise, so that this example runs against any
// server. On a site of your own write the values here and take the query out.
const query = new URLSearchParams(location.search);
const server = query.get("server") ?? "http://127.0.0.1:8080";
const domain = query.get("domain") ?? "docs.example.com";
const key = query.get("key") ?? ""; // an assistant key: it may stand in a page
// Where documentation is private: the page of your own server that signs who its visitor is, and answers with the token as text.
const signs = query.get("signs");
const reader = async (): Promise<Record<string, string>> =>
  signs ? { "X-Docent-Reader": await (await fetch(signs)).text() } : {};

type Message = UIMessage<{ threadId?: string }>;
type Conversation = { id: string; threadId: string | null; messages: Message[] };

// The conversation is kept for as long as the tab is open.
const place = `docent ${server} ${domain}`;
const keep = (c: Conversation) => sessionStorage.setItem(place, JSON.stringify(c));
const kept = (): Conversation | null => JSON.parse(sessionStorage.getItem(place) ?? "null");
const fresh = (): Conversation => ({ id: generateId(), threadId: null, messages: [] });

export function App() {
  const [conversation, setConversation] = useState(() => kept() ?? fresh());
  return <Chat key={conversation.id} conversation={conversation} startAnew={() => setConversation(fresh())} />;
}

function Chat({ conversation, startAnew }: { conversation: Conversation; startAnew: () => void }) {
  const threadId = useRef(conversation.threadId);
  const [transport] = useState(() => new DefaultChatTransport<Message>({
    api: `${server}/discovery/v2/assistant/${domain}/message`,
    headers: async () => ({ Authorization: `Bearer ${key}`, ...(await reader()) }),
    // The server has the thread's history, so the newest message is enough.
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
      body: { fp: "anonymous", threadId: threadId.current, id, trigger, messageId, messages: messages.slice(-1) },
    }),
  }));
  const { messages, sendMessage, regenerate, stop, status, error } = useChat<Message>({
    id: conversation.id,
    messages: conversation.messages,
    transport,
    resume: conversation.messages.length > 0, // an answer that goes on is read again from its start
    throttle: 50,
  });
  const busy = status === "submitted" || status === "streaming";

  // The thread's id comes with the first part of an answer, so a reload in the middle of it loses nothing.
  useEffect(() => {
    threadId.current = messages.at(-1)?.metadata?.threadId ?? threadId.current;
    keep({ id: conversation.id, threadId: threadId.current, messages });
  }, [conversation.id, messages]);

  const [input, setInput] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (busy || !input.trim()) return;
    sendMessage({ text: input });
    setInput("");
  }

  return (
    <>
      <header>
        <h1>Ask the docs</h1>
        <button onClick={startAnew} disabled={messages.length === 0}>New chat</button>
      </header>
      <main>
        <div aria-live="polite">
          {messages.map((message) => <Bubble key={message.id} message={message} />)}
          {status === "submitted" && <p className="note">Searching…</p>}
          {error && <p className="error" role="alert">{sentence(error)}</p>}
          {messages.length > 0 && !busy && (
            <button onClick={() => regenerate()}>{error ? "Try again" : "Regenerate"}</button>
          )}
        </div>
      </main>
      <form onSubmit={submit}>
        <input value={input} onChange={(event) => setInput(event.target.value)} placeholder="Ask a question" aria-label="Question" autoFocus />
        {busy ? <button type="button" onClick={stop}>Stop</button> : <button>Ask</button>}
      </form>
    </>
  );
}

function Bubble({ message }: { message: Message }) {
  const sources = message.parts.filter((part) => part.type === "source-url");
  return (
    <article className={message.role}>
      {message.parts.map((part, n) => part.type === "text" && <div className="text" key={n}>{part.text}</div>)}
      {sources.length > 0 && (
        <ul className="sources" aria-label="Sources">
          {sources.map((source) => <li key={source.sourceId}><a href={source.url}>{source.title ?? source.url}</a></li>)}
        </ul>
      )}
    </article>
  );
}

// A refusal is the server's JSON, with a sentence for people in "error".
function sentence(error: Error): string {
  try {
    return JSON.parse(error.message).error;
  } catch {
    return error instanceof TypeError ? `The connection to ${server} failed.` : error.message;
  }
}
