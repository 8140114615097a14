// Markdown of answers as elements that can do nothing but be read.
import DOMPurify from "dompurify";
import { Marked } from "marked";

const escaped = (text: string) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// HTML in an answer is shown as text, and a picture as what it is called: the elements that a reader gets are Markdown's own. What is
// made of them is sanitized all the same.
const marked = new Marked({
  gfm: true, breaks: false,
  renderer: { html: ({ text }) => escaped(text), image: ({ text }) => escaped(text) },
});

const admonition = /^\s*\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*/i;

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "strong", "em", "del", "code", "pre", "blockquote", "a",
    "table", "thead", "tbody", "tr", "th", "td", "sup", "sub", "kbd"],
  ALLOWED_ATTR: ["href", "title", "class", "align", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|\/(?!\/)|#)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const;

interface Source {
  url: string;
  title?: string;
}

export interface Labels {
  copy: string;
  copied: string;
}

/** spoken is the text of an answer as it is shown, for those who hear it: without the numbers of sources and the buttons. */
export function spoken(text: string, sources: Source[], labels: Labels): string {
  const fragment = rendered(text, sources, labels);
  for (const e of fragment.querySelectorAll(".copy,.cite")) {
    const unsaid = e.closest("sup") ?? e;
    const before = unsaid.previousSibling;
    if (before instanceof Text) before.data = before.data.trimEnd();
    unsaid.remove();
  }
  return fragment.textContent ?? "";
}

/** rendered is an answer as elements. Marks such as [2] lead to the source of that number. */
export function rendered(text: string, sources: Source[], labels: Labels): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(text, { async: false }), allowed as never) as unknown as DocumentFragment;
  for (const a of fragment.querySelectorAll("a")) {
    if (!a.getAttribute("href")) a.replaceWith(...a.childNodes); // its address was taken away
    else if (new URL(a.href, location.href).origin !== location.origin) {
      a.target = "_blank";
      a.rel = "noopener noreferrer";
    }
  }
  for (const e of fragment.querySelectorAll("[class]")) {
    if (!/^language-[\w+#.-]+$/.test(e.className)) e.removeAttribute("class");
  }
  for (const quote of fragment.querySelectorAll("blockquote")) {
    const first = quote.querySelector("p")?.firstChild;
    const kind = first instanceof Text ? admonition.exec(first.data) : null;
    if (!kind) continue;
    (first as Text).data = (first as Text).data.slice(kind[0].length);
    quote.className = `admonition ${kind[1]!.toLowerCase()}`;
    quote.setAttribute("role", "note");
  }
  for (const table of fragment.querySelectorAll("table")) {
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", table.querySelector("th")?.textContent || "table");
    table.replaceWith(scroll);
    scroll.append(table);
  }
  for (const pre of fragment.querySelectorAll("pre")) {
    pre.tabIndex = 0;
    const box = document.createElement("div");
    box.className = "code";
    pre.replaceWith(box);
    box.append(pre, copyButton(() => pre.textContent ?? "", labels));
  }
  cite(fragment, sources);
  return fragment;
}

/** copyButton copies a text and says so. */
export function copyButton(text: () => string, labels: Labels) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = labels.copy;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = labels.copied;
      setTimeout(() => { button.textContent = labels.copy; }, 2000);
    } catch {
      // Not a secure context: the reader selects and copies by hand.
    }
  };
  return button;
}

/** cite makes links of the numbers of sources, outside of code and of links. */
function cite(fragment: DocumentFragment, sources: Source[]) {
  if (sources.length === 0) return;
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) {
    const t = walker.currentNode as Text;
    if (/\[\d+\]/.test(t.data) && !t.parentElement?.closest("code,pre,a")) texts.push(t);
  }
  for (const t of texts) {
    const parts = t.data.split(/\[(\d+)\]/);
    const nodes: Node[] = [];
    parts.forEach((part, i) => {
      const source = i % 2 ? sources[Number(part) - 1] : undefined;
      if (!source) return nodes.push(document.createTextNode(i % 2 ? `[${part}]` : part));
      const link = sourceLink(source.url);
      link.textContent = part;
      link.setAttribute("aria-label", `${part}: ${source.title || source.url}`);
      link.className = "cite";
      const sup = document.createElement("sup");
      sup.append(link);
      nodes.push(sup);
    });
    t.replaceWith(...nodes);
  }
}

/** safeURL is an address that a source may lead to; empty for what could run a program. */
export function safeURL(url: string): string {
  try {
    const u = new URL(url, location.href);
    return u.protocol === "https:" || u.protocol === "http:" || u.protocol === "mailto:" ? u.href : "";
  } catch {
    return "";
  }
}

function sourceLink(url: string) {
  const a = document.createElement("a");
  const safe = safeURL(url);
  if (safe) a.href = safe;
  return a;
}
