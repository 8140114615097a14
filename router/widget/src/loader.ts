// What every page of the site loads: a button, a shortcut, and the rest when somebody uses it.
import type { Config, Snippet } from "./config";
import type { Panel } from "./panel";

declare const PANEL: string; // the file of the rest, with its hash

const script = document.currentScript as HTMLScriptElement | null;
const source = script?.src ?? "";
let own: DocentAssistant | undefined; // the page's element

/** bright is whether black reads better on a color than white does. */
const bright = (color: string) => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) =>
  sum + share * (parseInt(color.slice(2 * i + 1, 2 * i + 3), 16) / 255) ** 2.2, 0) > 0.18;
const accent = (host: string, color?: string) => /^#[\da-f]{6}$/i.test(color ?? "")
  ? `:host${host}{--docent-accent:${color};--docent-on-accent:${bright(color!) ? "#000" : "#fff"}}` : "";

const iconPath = "M4 5h16v11H9l-5 4z";

class DocentAssistant extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  #button?: HTMLButtonElement;
  #panel?: Promise<Panel>;
  #settled?: Promise<void>;
  /** Who the reader is, as the site's server signs it: a token, or what fetches one. It is asked for each request. */
  readerToken?: string | ((about: { fresh: boolean }) => string | null | undefined | Promise<string | null | undefined>);

  connectedCallback() {
    own ??= this;
    this.#settled ??= this.#settle();
  }

  disconnectedCallback() {
    if (own === this) own = document.querySelector<DocentAssistant>("docent-assistant") ?? undefined;
  }

  /** settle takes what the project says of its widget, where the page does not say it, and shows the button. */
  async #settle() {
    const d = this.dataset;
    try {
      const response = await fetch(`${this.config.server}/widget/settings/${encodeURIComponent(this.config.domain)}`, { credentials: "omit", signal: AbortSignal.timeout(3000) });
      const stored: Record<string, string> = response.ok ? await response.json() : {};
      for (const name in stored) d[name] ??= stored[name];
    } catch {
      // As the page says, then.
    }
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`${accent("", d.accent)}${accent("([data-shown=dark])", d.accentDark)}:host{position:fixed;inset-block-end:1rem;inset-inline-end:1rem;z-index:2147483000}:host([data-button=start]){inset-inline:1rem auto}:host([data-button=none]) .open{display:none}
.open{all:unset;box-sizing:border-box;cursor:pointer;min-inline-size:3.25rem;block-size:3.25rem;border-radius:2rem;display:flex;gap:.5rem;align-items:center;justify-content:center;padding-inline:.75rem;font:600 1rem system-ui,sans-serif;color:var(--docent-on-accent,#fff);background:var(--docent-accent,#0b57d0);box-shadow:0 2px 10px #0004}
.open:focus-visible{outline:3px solid var(--docent-focus,currentColor);outline-offset:2px}`);
    this.#root.adoptedStyleSheets.push(sheet);
    const button = document.createElement("button");
    button.className = "open";
    button.type = "button";
    button.setAttribute("part", "button");
    if (!d.label) button.setAttribute("aria-label", "Ask the documentation");
    button.setAttribute("aria-haspopup", "dialog");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["viewBox", "0 0 24 24"], ["width", "24"], ["height", "24"], ["fill", "none"], ["stroke", "currentColor"],
      ["stroke-width", "2"], ["stroke-linejoin", "round"], ["aria-hidden", "true"]] as const) svg.setAttribute(name, value);
    const line = document.createElementNS(svg.namespaceURI, "path");
    line.setAttribute("d", iconPath);
    svg.append(line);
    button.append(svg, d.label ?? "");
    button.addEventListener("click", () => this.open());
    this.#root.append(button);
    this.#button = button;
    // An answer that was being written when the page was left is shown when the page comes back.
    if (sessionStorage.getItem(`docent:${d.domain}:open`)) this.open();
    // A link that somebody has copied from an answer brings the question. Nothing is asked before its reader says so.
    const here = new URL(location.href);
    const shared = here.searchParams.get("docent");
    if (shared && own === this) {
      here.searchParams.delete("docent");
      history.replaceState(history.state, "", here);
      this.open(shared.slice(0, 1000), undefined, false);
    }
  }

  get config(): Config {
    const d = this.dataset;
    const server = (d.server ?? new URL(source || location.href).origin).replace(/\/+$/, "");
    return { server, domain: d.domain ?? location.host, key: d.key ?? "", version: d.version ?? "", language: d.language ?? "",
      theme: d.theme ?? "", history: d.history !== undefined && d.history !== "false", user: d.user ?? "",
      greeting: d.greeting ?? "", contact: d.contact ?? "", contactIssues: d.contactIssues !== undefined, logo: d.logo ?? "", openIn: (d.openIn ?? "").split(/[\s,]+/).filter(Boolean),
      suggestions: (d.suggestions ?? "").split("\n").map((s) => s.trim()).filter(Boolean), proof: d.proof !== undefined,
      readerToken: async (fresh) => (typeof this.readerToken === "function" ? await this.readerToken({ fresh }) : this.readerToken ?? d.readerToken) || "" };
  }

  /** open shows the dialog, with a question and what it is about where these are given; it is only searched for unless it is to be asked. */
  async open(question = "", about?: Snippet, ask = true) {
    await this.#settled;
    const base = source || this.config.server + "/widget/";
    this.#panel ??= import(new URL(PANEL, base).href)
      .then((module: { mount(root: ShadowRoot, host: HTMLElement, config: Config, base: string): Promise<Panel> }) => module.mount(this.#root, this, this.config, base));
    try {
      (await this.#panel).open(question, about, ask);
    } catch (error) {
      this.#panel = undefined; // tried again at the next click
      console.error("docent: the assistant could not be loaded", error);
    }
  }
}

if (!customElements.get("docent-assistant")) customElements.define("docent-assistant", DocentAssistant);

document.addEventListener("click", (event) => {
  const opener = (event.target as Element | null)?.closest?.("[data-docent-open]");
  if (!opener || !own) return;
  event.preventDefault();
  const question = opener.getAttribute("data-docent-open");
  own.open(question && question !== "true" ? question : ""); // React writes an attribute without a value as "true"
});

const pressed = (event: KeyboardEvent) => {
  if (event.defaultPrevented || event.key.toLowerCase() !== (own?.dataset.shortcut || "k").toLowerCase() || !(event.metaKey || event.ctrlKey) || event.altKey || event.shiftKey || !own) return;
  event.preventDefault();
  own.open();
};
// The site's own shortcuts come first: this listens after everybody else, whenever they began to.
addEventListener("keydown", () => {
  removeEventListener("keydown", pressed);
  addEventListener("keydown", pressed);
}, true);

// What is selected in the page can be asked about.
let ask: HTMLButtonElement | undefined;
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  const text = selection?.toString().trim() ?? "";
  if (!own || own.dataset.selection === "none" || text.length < 3 || !selection?.rangeCount || own.contains(selection.anchorNode)) {
    ask?.remove();
    return;
  }
  const range = selection.getRangeAt(0);
  const at = range.getBoundingClientRect();
  const near = range.commonAncestorContainer;
  const element = near instanceof Element ? near : near.parentElement;
  if (!element || element.closest("input,textarea,[contenteditable]")) return;
  ask ??= document.createElement("button");
  ask.type = "button";
  ask.textContent = own.dataset.askAbout ?? "Ask about this";
  ask.setAttribute("part", "ask-about");
  ask.onmousedown = (event) => event.preventDefault(); // the selection stays
  ask.onclick = () => {
    const code = element.closest("pre,code");
    own?.open("", { type: code ? "code" : "textSelection", value: text.slice(0, 8000), path: location.pathname,
      elementId: (code ?? element).closest("[id]")?.id });
    ask?.remove();
  };
  const style = ask.style; // by the object model: the page's policy need not allow inline styles
  style.position = "fixed";
  style.insetInlineEnd = style.insetBlockEnd = "auto";
  style.top = `${Math.max(4, at.top - 44)}px`;
  style.left = `${Math.min(Math.max(4, at.left), innerWidth - 160)}px`;
  style.font = "600 14px system-ui,sans-serif";
  style.padding = "8px 12px";
  style.border = "0";
  style.borderRadius = "8px";
  style.color = "var(--docent-on-accent,#fff)";
  style.background = "var(--docent-accent,#0b57d0)";
  style.cursor = "pointer";
  own.shadowRoot?.append(ask);
});

function start() {
  if (!script?.dataset.domain || document.querySelector("docent-assistant")) return; // also where a site runs its scripts again
  const element = document.createElement("docent-assistant");
  Object.assign(element.dataset, script.dataset);
  element.dataset.server ??= new URL(source).origin;
  document.body.append(element);
  let body = document.body;
  new MutationObserver(() => { // a site that changes pages by replacing the body keeps its assistant
    if (document.body === body || !document.body) return;
    body = document.body;
    if (!element.isConnected && !document.querySelector("docent-assistant")) body.append(element);
  }).observe(document.documentElement, { childList: true });
}
if (document.body) start();
else addEventListener("DOMContentLoaded", start);
