// The dialog: search and ask in one.
import { type ComponentChildren, render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { Api, type Hit, Refusal } from "./api";
import { Conversation, Store, type Turn } from "./chat";
import type { Config, Snippet } from "./config";
import { copyButton, rendered, safeURL, spoken } from "./markdown";
import { fill, type Strings, type Words, wordsOf } from "./strings";
import { styles } from "./styles";

export interface Panel {
  open(question?: string, about?: Snippet, ask?: boolean): void;
}

/** mount puts the dialog into the element's shadow, closed. Base is where the widget's files are. */
export async function mount(root: ShadowRoot, host: HTMLElement, config: Config, base: string): Promise<Panel> {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  followTheme(host, config);
  const store = new Store(config);
  const api = new Api(config, base);
  const words = await wordsOf(config.language || document.documentElement.lang || navigator.language, base);
  const place = document.createElement("div");
  root.append(place);
  let show: ((question: string, about?: Snippet, ask?: boolean) => void) | undefined;
  render(<Dialog api={api} store={store} words={words} opener={(open) => { show = open; }} />, place);
  return { open: (question = "", about, ask) => show?.(question, about, ask) };
}

/** followTheme shows light or dark as the site does: by what it says on its root, else by its background, else as the system has it. */
function followTheme(host: HTMLElement, config: Config) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = () => { host.dataset.shown = config.theme || siteTheme() || background() || (system.matches ? "dark" : "light"); };
  set();
  system.addEventListener("change", set);
  const seen = new MutationObserver(set);
  for (const e of [document.documentElement, document.body]) {
    e.addEventListener("transitionend", (event) => event.target === e && set());
    seen.observe(e, { attributes: true, attributeFilter: ["class", "data-theme", "data-color-mode", "data-md-color-scheme", "data-bs-theme"] });
  }
}

function siteTheme(): string {
  for (const e of [document.documentElement, document.body]) {
    const said = e.dataset.theme ?? e.dataset.colorMode ?? e.dataset.bsTheme ?? e.dataset.mdColorScheme;
    if (said === "dark" || said === "slate") return "dark";
    if (said === "light" || said === "default") return "light";
    if (e.classList.contains("dark")) return "dark";
    if (e.classList.contains("light")) return "light";
  }
  return "";
}

/** background is light or dark by the page's background color, however it is written; empty where there is none. */
function background(): string {
  for (const e of [document.body, document.documentElement]) {
    const color = getComputedStyle(e).backgroundColor;
    const [a = 0, b = 0, c = 0, alpha = 1] = (color.match(/[\d.]+/g) ?? []).map(Number);
    const lightness = /^ok/.test(color) ? a : /^l/.test(color) ? a / 100 : (a * 3 + b * 6 + c) / (/^rgb/.test(color) ? 2550 : 10);
    if (alpha > 0.5) return lightness < 0.5 ? "dark" : "light";
  }
  return "";
}

interface Props {
  api: Api;
  store: Store;
  words: Words;
  opener(open: (question: string, about?: Snippet, ask?: boolean) => void): void;
}

function Dialog({ api, store, words, opener }: Props) {
  const t = words.strings;
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const talk = useRef<Conversation>(undefined);
  const frame = useRef(0);
  talk.current ??= new Conversation(api, store, () => { // at most once a frame
    frame.current ||= requestAnimationFrame(() => { frame.current = 0; redraw(0); });
  });
  const [searching, setSearching] = useState(talk.current.chat.turns.length === 0);
  const [text, write] = useState("");
  const setText = (s: string) => { write(s); if (s) api.prepare(); };
  const [about, setAbout] = useState<Snippet>();

  const toField = () => requestAnimationFrame(() => input.current?.focus());

  opener((question, snippet, asks = true) => {
    setAbout(snippet);
    if (snippet) setSearching(false);
    if (!dialog.current!.open) dialog.current!.showModal();
    input.current?.focus(); // at once: a reader types before the next frame
    store.open = true;
    talk.current!.takeUp();
    if (question && asks) ask(question);
    else if (question) {
      setSearching(true);
      setText(question);
    }
    toField();
  });

  function ask(question: string) {
    if (!question.trim()) return;
    if (talk.current!.busy) return setText(question); // it waits in the field for the end of the answer before it
    setSearching(false);
    setText("");
    talk.current!.ask(question, about);
    setAbout(undefined);
    toField();
  }

  function close() {
    dialog.current!.close();
    store.open = false;
  }

  /** follow shows a page in place of the dialog. Its link is one of the page's own, so that a site that changes pages by itself does. */
  function follow(url: string) {
    close();
    const link = document.createElement("a");
    link.href = url;
    link.hidden = true;
    document.body.append(link);
    link.click();
    link.remove();
  }

  return (
    <dialog ref={dialog} part="dialog" lang={words.language} dir={words.direction} aria-label={t.title} onClose={() => { store.open = false; }}
      onClick={(event) => {
        const link = event.target instanceof Element ? event.target.closest("a") : null;
        if (link?.href && !link.target && link.protocol !== "mailto:" && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey) {
          event.preventDefault();
          follow(link.href);
        } else if (event.target === dialog.current && outside(event, dialog.current!)) close();
      }}>
      <div class="head">
        {searching ? null : <button type="button" class="plain" aria-label={t.back} title={t.back} onClick={() => { setSearching(true); toField(); }}>{words.direction === "rtl" ? "→" : "←"}</button>}
        {safeURL(api.config.logo || "data:") ? <img class="logo" part="logo" src={safeURL(api.config.logo)} alt="" /> : null}
        <h2>{t.title}</h2>
        {searching || talk.current.chat.turns.length === 0 ? null : <button type="button" onClick={() => { talk.current!.begin(); setSearching(true); toField(); }}>{t.fresh}</button>}
        <button type="button" class="plain" aria-label={t.close} title={t.close} onClick={close}>✕</button>
      </div>
      {searching
        ? <Search api={api} t={t} text={text} setText={setText} input={input} ask={ask} follow={follow} store={store}>
            <Earlier store={store} t={t} current={talk.current.chat.id} open={(chat) => { talk.current!.begin(chat); setSearching(false); }} redraw={() => redraw(0)} search={setText}
              go={() => setSearching(false)} turns={talk.current.chat.turns} />
          </Search>
        : <Answers talk={talk.current} t={t} text={text} setText={setText} input={input} ask={ask} about={about} drop={() => setAbout(undefined)} />}
      <div class="foot" part="notice">{t.notice}</div>
    </dialog>
  );
}

/** outside is whether a click fell on what is behind the dialog. */
function outside(event: MouseEvent, dialog: HTMLDialogElement) {
  const r = dialog.getBoundingClientRect();
  return event.clientX < r.left || event.clientX > r.right || event.clientY < r.top || event.clientY > r.bottom;
}

interface SearchProps {
  api: Api;
  t: Strings;
  text: string;
  setText(text: string): void;
  input: { current: HTMLInputElement | null };
  ask(question: string): void;
  follow(url: string): void;
  store: Store;
  children: ComponentChildren;
}

/** Search finds as one types. The first entry asks instead. */
function Search({ api, t, text, setText, input, ask, follow, store, children }: SearchProps) {
  const [hits, setHits] = useState<Hit[]>();
  const [problem, setProblem] = useState("");
  const [at, setAt] = useState(0);
  const query = text.trim();
  useEffect(() => {
    setAt(0);
    setProblem("");
    if (!query) return setHits(undefined);
    const stop = new AbortController();
    let tries = 0;
    let timer = setTimeout(() => {
      const search = () => api.search(query, stop.signal).then(setHits, (error) => {
        if (error.name === "AbortError") return;
        if (error.status === 503 && tries++ < 5) { // busy for a moment
          timer = setTimeout(search, 1000 * error.after || 1000);
          return;
        }
        setHits([]);
        setProblem(error instanceof Refusal ? error.message : t.failed);
      });
      void search();
    }, 120);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [query]);
  const entries = query ? [undefined, ...(hits ?? [])] : [];
  const choose = (hit: Hit | undefined) => {
    if (!hit) return ask(query);
    const url = safeURL(hit.metadata.url ?? hit.path);
    if (!url) return;
    store.searched(query);
    follow(url);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((at + (event.key === "ArrowDown" ? 1 : entries.length - 1)) % Math.max(entries.length, 1));
    }
  };
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => { list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }, [at]);
  return (
    <>
      <div class="head">
        <form role="search" onSubmit={(event) => { event.preventDefault(); if (query) choose(entries[at]); }}>
          <input ref={input} part="input" value={text} placeholder={t.placeholder} aria-label={t.placeholder} role="combobox" aria-expanded={entries.length > 0}
            aria-controls="found" aria-autocomplete="list" aria-activedescendant={entries.length ? `found-${at}` : undefined} autocomplete="off" enterkeyhint="search"
            maxLength={1000} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKey} />
        </form>
      </div>
      <div class="body">
        <div class="hidden" role="status">{query && hits ? fill(t.found, hits.length) : ""}</div>
        {problem ? <p class="problem" role="alert">{problem}</p> : null}
        <ul class="found" id="found" role="listbox" aria-label={t.placeholder} ref={list}>
          {entries.map((hit, i) => (
            <li role="presentation" key={hit ? hit.path + hit.metadata.heading : "ask"}>
              <a role="option" id={`found-${i}`} tabIndex={-1} aria-selected={i === at} aria-label={hit && `${titleOf(hit)} ${hit.metadata.excerpt ?? ""}`} href={hit ? safeURL(hit.metadata.url ?? hit.path) || undefined : undefined}
                onClick={() => (hit ? store.searched(query) : ask(query))} onMouseMove={() => setAt(i)}>
                {hit ? <Found hit={hit} query={query} /> : <strong>{fill(t.askThis, query)}</strong>}
              </a>
            </li>
          ))}
        </ul>
        {query && hits?.length === 0 && !problem ? <p class="dim">{t.nothing}</p> : null}
        {query ? null : (
          <>
            {api.config.greeting ? <p>{api.config.greeting}</p> : null}
            {api.config.suggestions.length ? <Chips name={t.further} list={api.config.suggestions} ask={ask} /> : null}
            {children}
          </>
        )}
      </div>
      <div class="foot keys" aria-hidden="true"><kbd>↑</kbd><kbd>↓</kbd> {t.move} <kbd>↵</kbd> {t.choose} <kbd>Esc</kbd> {t.close}</div>
    </>
  );
}

const titleOf = ({ metadata: m }: Hit) => (m.heading && m.heading !== m.title ? `${m.title} › ${m.heading}` : m.title);

// The marks cut identifiers apart, for those who hear them; the option has its text as a label.
const Found = ({ hit, query }: { hit: Hit; query: string }) =>
  <><strong>{marked(titleOf(hit), query)}</strong> <small>{marked(hit.metadata.excerpt ?? "", query)}</small></>;

const termsOf = (query: string) => query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter((w) => w.length > 1);

/** marked marks the words of the query in a text. */
function marked(text: string, query: string): ComponentChildren {
  const words = termsOf(query).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return text;
  return text.split(new RegExp(`(${words.join("|")})`, "giu")).map((part, i) => (i % 2 ? <mark key={i}>{part}</mark> : part));
}

function Earlier({ store, t, current, open, redraw, go, turns, search }: { store: Store; t: Strings; current: string; turns: Turn[]; open(chat: Conversation["chat"]): void; redraw(): void; go(): void; search(query: string): void }) {
  const chats = store.history.filter((c) => c.id !== current);
  return (
    <>
      {turns.length ? <p><button type="button" onClick={go}>{turns.at(-1)!.question}</button></p> : null}
      {store.searches.length ? <><p class="dim">{t.recent}</p><Chips name={t.recent} list={store.searches} ask={search} /></> : null}
      {chats.length ? (
        <section aria-label={t.earlier}>
          <p class="dim">{t.earlier}</p>
          <div class="chips">{chats.map((c) => <button type="button" key={c.id} onClick={() => open(c)}>{c.turns[0]?.question.slice(0, 60)}</button>)}</div>
        </section>
      ) : null}
      {chats.length || store.searches.length ? <button type="button" class="plain dim" onClick={() => { store.forget(); redraw(); }}>{t.forget}</button> : null}
    </>
  );
}

interface AnswersProps {
  talk: Conversation;
  t: Strings;
  text: string;
  setText(text: string): void;
  input: { current: HTMLInputElement | null };
  ask(question: string): void;
  about?: Snippet;
  drop(): void;
}

function Answers({ talk, t, text, setText, input, ask, about, drop }: AnswersProps) {
  const turns = talk.chat.turns;
  const last = turns.at(-1);
  const main = useRef<HTMLDivElement>(null);
  const asked = turns.length;
  useLayoutEffect(() => { main.current?.lastElementChild?.scrollIntoView({ block: "start" }); }, [asked]);
  const state = last?.state;
  const answer = useMemo(() => (last && state === "done" ? spoken(last.text, last.sources, t) : ""), [last?.id, state]);
  const said = state && { asking: t.writing, writing: "", reconnecting: t.reconnecting, done: answer, stopped: t.stopped, failed: "" }[state]; // a failure is an alert
  return (
    <>
      <div class="body" ref={main} part="answers" tabIndex={-1}>
        <div class="hidden" role="status" aria-live="polite">{said}</div>
        {turns.map((turn) => <Answer key={turn.id} turn={turn} talk={talk} t={t} last={turn === last} ask={ask} />)}
      </div>
      <div class="foot">
        {about ? <p class="about"><span class="hidden">{t.about}: </span>{about.value.slice(0, 300)} <button type="button" class="plain" aria-label={t.close} onClick={drop}>✕</button></p> : null}
        <form onSubmit={(event) => { event.preventDefault(); ask(text); }}>
          <input ref={input} part="input" value={text} placeholder={turns.length ? t.follow : t.placeholder} aria-label={turns.length ? t.follow : t.placeholder} autocomplete="off"
            enterkeyhint="send" maxLength={1000} onInput={(event) => setText(event.currentTarget.value)} />
          {talk.busy ? <button type="button" onClick={() => talk.stop()}>{t.stop}</button> : <button class="go">{t.ask}</button>}
        </form>
      </div>
    </>
  );
}

function Answer({ turn, talk, t, last, ask }: { turn: Turn; talk: Conversation; t: Strings; last: boolean; ask(question: string): void }) {
  const lead = useRef<HTMLDivElement>(null);
  const rest = useRef<HTMLDivElement>(null);
  const writing = turn.state === "asking" || turn.state === "writing";
  useLayoutEffect(() => {
    const all = rendered(turn.text, turn.sources, t);
    let cited = writing ? -1 : [...all.children].findIndex((e) => e.querySelector(".cite"));
    while (cited >= 0 && /:\s*\d*$/.test(all.children[cited]?.textContent ?? "")) cited++; // what it announces belongs to it
    rest.current?.replaceChildren(...(cited < 0 ? [] : [...all.children].slice(cited + 1)));
    lead.current?.replaceChildren(all);
  }, [turn.text, turn.sources.length, writing]);
  return (
    <article aria-busy={writing}>
      {turn.about ? <p class="about">{turn.about.value.slice(0, 300)}</p> : null}
      <h3 class="question">{turn.question}</h3>
      <div class={writing ? "answer writing" : "answer"} part="answer">
        <div ref={lead} />
        {turn.sources.length && !writing ? (
          <nav aria-label={t.sources}>
            <p class="dim" aria-hidden="true">{t.sources}</p>
            <ol class="sources" part="sources">{turn.sources.map((s, i) => <li key={s.url}><a href={safeURL(s.url) || undefined}><span>{i + 1}</span> {s.title || s.url}</a></li>)}</ol>
          </nav>
        ) : null}
        <div ref={rest} />
      </div>
      {turn.state === "reconnecting" ? <p class="dim">{t.reconnecting}</p> : null}
      {turn.state === "stopped" ? <p class="dim">{t.stopped}</p> : null}
      {turn.state === "failed" ? <p class="problem" role="alert">{turn.problem || t.failed}</p> : null}
      {turn.cards?.length && !writing ? (
        <details class="cards" part="cards">
          <summary>{fill(t.more, turn.cards.length)}</summary>
          <ul class="found">{turn.cards.map((c) => <li key={c.url + c.title}><a href={safeURL(c.url) || undefined}><strong>{c.title || c.url}</strong><small>{c.excerpt}</small></a></li>)}</ul>
        </details>
      ) : null}
      {writing || turn.state === "reconnecting" ? null : <Tools turn={turn} talk={talk} t={t} last={last} />}
      {last && !writing && turn.suggestions.length ? (
        <Chips name={t.further} list={turn.suggestions.map((s) => s.text)} ask={ask} />
      ) : null}
    </article>
  );
}

/** Chips are questions to ask with a click. */
function Chips({ name, list, ask }: { name: string; list: string[]; ask(question: string): void }) {
  return <nav class="chips" aria-label={name}>{list.map((s) => <button type="button" key={s} onClick={() => ask(s)}>{s}</button>)}</nav>;
}

/** Thumb is a picture: not every system has the sign in a font. */
function Thumb({ down }: { down?: boolean }) {
  return (
    <svg viewBox="0 0 24 24" width="16" height="16" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round" aria-hidden="true">
      <path transform={down ? "rotate(180 12 12)" : undefined} d="M3 11h4v9H3zM7 11l4-8c2 0 3 1 3 3l-1 4h6c1 0 2 1 2 2l-2 6c0 1-1 2-2 2H7" />
    </svg>
  );
}

/** toPeople leads to those who help where the documentation does not: a page, or a mail that begins with the conversation. */
function toPeople({ api, chat }: Conversation) {
  const at = api.config.contact.trim();
  if (at === "form") return "";
  if (!at || /^https?:/.test(at)) return at && safeURL(at);
  const bounded = (text: string, most: number) => { // mail programs take some 2,000 characters of an address, as they are encoded
    let out = "";
    for (const c of text.slice(0, most)) {
      const encoded = /\p{Cs}/u.test(c) ? "" : encodeURIComponent(c);
      if (out.length + encoded.length > most) break;
      out += encoded;
    }
    return out;
  };
  const said = chat.turns.slice(-3).reverse().map((turn) => `> ${turn.question}\n\n${turn.text}`).join("\n\n"); // the newest first: what is behind may be cut
  return `mailto:${encodeURIComponent(at).replace("%40", "@")}?subject=${bounded(chat.turns.at(-1)!.question, 300)}&body=${bounded(`\n\n${said}`, 1500)}`;
}

/** chats are clients that take a question by an address. */
const chats: Record<string, [name: string, address: string]> = { chatgpt: ["ChatGPT", "https://chatgpt.com/?q="], claude: ["Claude", "https://claude.ai/new?q="] };

/** elsewhere is a link that takes a question to a chat client, with the pages that answer it. */
const elsewhere = (address: string, turn: Turn) => address + encodeURIComponent(`${turn.question}\n\n${turn.sources.map((s) => safeURL(s.url)).join("\n")}`.slice(0, 1500).replace(/\p{Cs}/gu, "")); // half of a character cannot be encoded

/** shared is the page's address with the question. */
function shared(turn: Turn) {
  const url = new URL(location.href);
  url.hash = "";
  url.searchParams.set("docent", turn.question);
  return url.href;
}

/** HandOver is the form by which the conversation goes to people. */
function HandOver({ turn, talk, t }: { turn: Turn; talk: Conversation; t: Strings }) {
  const [open, setOpen] = useState(false);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState("");
  const first = useRef<HTMLTextAreaElement>(null);
  const sent = useRef<HTMLParagraphElement>(null);
  useEffect(() => { first.current?.focus(); }, [open]);
  useLayoutEffect(() => { if (sending) sent.current?.focus(); }, [turn.contacted]);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const values = new FormData(event.currentTarget as HTMLFormElement);
    setSending(true);
    setProblem("");
    try {
      await talk.handOver(turn, { message: String(values.get("message")), name: String(values.get("name")), email: String(values.get("email")), public: talk.api.config.contactIssues });
    } catch (error) {
      setSending(false);
      setProblem(error instanceof Refusal ? error.message : t.failed);
    }
  };
  if (turn.contacted) return <p class="dim" role="status" tabIndex={-1} ref={sent}>{t.contactSent}</p>;
  return (
    <>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>{t.contact}</button>
      {open ? (
        <form class="contact" part="contact" onSubmit={send}>
          <p class="dim">{t.contactNote} {talk.api.config.contactIssues ? t.contactPublic : ""}</p>
          <label>{t.contactMessage}<textarea ref={first} name="message" required maxLength={4000} rows={4} /></label>
          <label>{t.contactName}<input name="name" autocomplete="name" maxLength={100} /></label>
          <label>{t.contactEmail}<input name="email" type="email" required autocomplete="email" maxLength={254} /></label>
          {problem ? <p class="problem" role="alert">{problem}</p> : null}
          <p><button class="go" disabled={sending}>{t.send}</button></p>
        </form>
      ) : null}
    </>
  );
}

function Tools({ turn, talk, t, last }: { turn: Turn; talk: Conversation; t: Strings; last: boolean }) {
  const [why, setWhy] = useState<string>();
  const [thanked, setThanked] = useState(false);
  const copy = useRef<HTMLSpanElement>(null);
  const reason = useRef<HTMLInputElement>(null);
  const down = useRef<HTMLButtonElement>(null);
  useEffect(() => { reason.current?.focus(); }, [why === undefined]);
  useLayoutEffect(() => {
    copy.current?.replaceChildren(copyButton(() => turn.text, t), " ", copyButton(() => shared(turn), { copy: t.share, copied: t.copied }));
  }, [turn.text]);
  const contact = last ? toPeople(talk) : "";
  const rated = useRef(Promise.resolve()); // ratings are sent one after the other: the last one holds
  const rate = (rating: "up" | "down", comment?: string) => {
    rated.current = rated.current.then(() => talk.rate(turn, rating, comment)).then(() => setThanked(rating === "up" || comment !== undefined), () => {});
  };
  return (
    <>
      <div class="tools">
        {turn.messageId && turn.text ? (
          <>
            <button type="button" aria-pressed={turn.rating === "up"} aria-label={t.helpful} title={t.helpful} onClick={() => { setWhy(undefined); rate("up"); }}><Thumb /></button>
            <button ref={down} type="button" aria-pressed={turn.rating === "down"} aria-label={t.unhelpful} title={t.unhelpful} onClick={() => { setWhy(""); rate("down"); }}><Thumb down /></button>
          </>
        ) : null}
        {turn.text ? <span ref={copy} /> : null}
        {last && talk.chat.threadId ? <button type="button" onClick={() => talk.again()}>{turn.state === "failed" ? t.retry : t.again}</button> : null}
        {last && contact ? <a class="contact" href={contact} target={contact.startsWith("mailto:") ? undefined : "_blank"} rel="noopener">{t.contact}</a> : null}
        {turn.text ? talk.api.config.openIn.flatMap((name) => (chats[name] ? [chats[name]] : [])).map(([name, address]) =>
          <a key={name} class="contact" href={elsewhere(address, turn)} target="_blank" rel="noopener noreferrer">{fill(t.openIn, name)}</a>) : null}
        {last && !talk.chat.threadId && turn.state !== "done" ? <button type="button" onClick={() => { talk.chat.turns.pop(); talk.ask(turn.question, turn.about); }}>{t.retry}</button> : null}
        <span class="dim" role="status">{thanked ? t.thanks : ""}</span>
      </div>
      {last && talk.api.config.contact === "form" && talk.chat.threadId && turn.messageId ? <HandOver key={turn.messageId} turn={turn} talk={talk} t={t} /> : null}
      {why === undefined || thanked ? null : (
        <form onSubmit={(event) => { event.preventDefault(); down.current?.focus(); rate("down", why); }}>
          <input ref={reason} value={why} aria-label={t.why} placeholder={t.why} maxLength={1000} onInput={(event) => setWhy(event.currentTarget.value)} />
          <button>{t.send}</button>
        </form>
      )}
    </>
  );
}
