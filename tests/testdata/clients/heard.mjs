// What a screen reader is told of the widget: Chromium's accessibility tree of it in each of its states, what its live regions say
// meanwhile, and where the Tab key leads. Prints that as text; a test holds it against what is committed. The API is played here, so that
// each state lasts until it was read.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { patient } from "./reader.mjs";

const { chromium: executablePath, dist } = JSON.parse(process.env.DOCENT_HEARD);

const hits = [
  { path: "/guides/mooring", content: "To moor a boat, run `harbour moor BOAT`.", metadata: { title: "Mooring", url: "/guides/mooring", excerpt: "To moor a boat, run harbour moor BOAT." } },
  { path: "/guides/mooring", content: "To leave with a boat, call `untie_boat(rope)`.", metadata: { title: "Mooring", heading: "Leaving", url: "/guides/mooring#leaving", excerpt: "To leave with a boat, call untie_boat(rope)." } },
];
const answer = ["To moor a boat, tie it to the quay [1].\n\n```bash\nharbour moor BOAT\n```\n\n", "> [!NOTE]\n> It takes a minute [2].\n\n| Rope | Length |\n| --- | --- |\n| long | 20 m |\n",
  "\n\n```suggestions\n(How do I leave?)[/guides/mooring]\n(How long is a rope?)[/guides/ropes]\n```"];
let leave = 0; // steps of the answer that may be taken: each of them waits for one, so that each state lasts until it was read
let waiting = () => {};
const goOn = () => { leave++; waiting(); };
async function step() {
  while (leave === 0) await new Promise((go) => { waiting = go; });
  leave--;
}
let fails = "";

const server = createServer(async (req, res) => {
  const { pathname, searchParams: q } = new URL(req.url, "http://x");
  const json = (status, v) => res.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(v));
  if (pathname.startsWith("/widget/settings/")) return json(200, { greeting: "Ahoy. Ask about boats.", suggestions: "How do I moor a boat?\nWhat does it cost?" });
  if (pathname.startsWith("/widget/")) return res.writeHead(200, { "Content-Type": "text/javascript; charset=utf-8" }).end(readFileSync(`${dist}/${pathname.slice(8)}`));
  if (pathname.includes("/search/")) return json(200, hits);
  if (pathname.includes("/feedback/")) return res.writeHead(204).end();
  if (pathname.endsWith("/message")) {
    if (fails) return json(429, { code: "rate_limited", message: fails });
    await step();
    res.writeHead(200, { "Content-Type": "text/event-stream", "X-Thread-Id": "thr_1" });
    const say = (part) => res.write(`data: ${JSON.stringify(part)}\n\n`);
    say({ type: "start", messageId: "msg_1", messageMetadata: { threadId: "thr_1" } });
    for (const delta of answer) {
      await step();
      say({ type: "text-delta", id: "t", delta });
    }
    say({ type: "source-url", sourceId: "1", url: "/guides/mooring", title: "Mooring" });
    say({ type: "source-url", sourceId: "2", url: "/guides/mooring#time", title: "Mooring: how long it takes" });
    say({ type: "finish" });
    return res.end("data: [DONE]\n\n");
  }
  if (pathname !== "/") return res.writeHead(204).end();
  res.setHeader("Content-Type", "text/html; charset=utf-8");
  res.end(`<!doctype html><html lang="${q.get("lang") ?? "en"}"><head><meta charset="utf-8"><title>Site</title></head><body><main><h1>Site</h1><button id="opener" data-docent-open>Ask the docs</button></main>
<script src="/widget/v1.js" data-domain="docs" data-history async></script></body></html>`);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--force-renderer-accessibility"] });
const lines = [];

async function visit(query) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 } });
  await patient(context);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`http://127.0.0.1:${server.address().port}/${query}`);
  await page.getByRole("button").nth(1).waitFor();
  const tree = await page.context().newCDPSession(page);
  return { page, tree };
}

const told = ["focused", "expanded", "selected", "pressed", "busy", "live", "modal", "hasPopup", "level", "disabled", "autocomplete", "required"];
const silent = new Set(["generic", "none", "InlineTextBox", "LineBreak", "ListMarker", "presentation", "LayoutTableRow", "GenericContainer"]);

/** tell writes down what there is of the page: while the dialog is open, the dialog alone. */
async function tell(state, { page, tree }) {
  await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go))));
  const { nodes } = await tree.send("Accessibility.getFullAXTree");
  const by = new Map(nodes.map((n) => [n.nodeId, n]));
  lines.push("", `== ${state}`);
  const walk = (n, depth) => {
    const role = n.role?.value;
    const name = (n.name?.value ?? "").replace(/\s+/g, " ").trim();
    let next = depth;
    if (!n.ignored && role === "StaticText") return void (name && lines.push(`${"  ".repeat(depth)}${JSON.stringify(name).slice(1, -1)}`));
    if (!n.ignored && !silent.has(role)) {
      const states = told.flatMap((p) => {
        const v = n.properties?.find((x) => x.name === p)?.value.value;
        return v === undefined || v === false || v === "false" || v === "" ? [] : [v === true || v === "true" ? p : `${p} ${v}`];
      });
      const value = n.value?.value ? ` = ${n.value.value}` : "";
      const describe = n.description?.value ? ` (${n.description.value})` : "";
      lines.push(`${"  ".repeat(depth)}${role}${name ? ` "${name}"` : ""}${value}${describe}${states.length ? ` [${states.join(", ")}]` : ""}`);
      next++;
      // What only repeats the name is not read twice.
      if (["button", "link", "option", "heading", "columnheader", "cell", "gridcell"].includes(role)) return;
    }
    for (const id of n.childIds ?? []) if (by.has(id)) walk(by.get(id), next);
  };
  walk(nodes[0], 0);
}

/** listen writes down what the live regions say from now on. */
const listen = (page) => page.evaluate(() => {
  window.said = [];
  const root = document.querySelector("docent-assistant").shadowRoot;
  const seen = new WeakMap();
  const look = () => {
    for (const e of root.querySelectorAll("[role=status],[role=alert]")) {
      const text = e.textContent.trim();
      if (text && seen.get(e) !== text) window.said.push(text);
      seen.set(e, text);
    }
  };
  look();
  window.said = [];
  new MutationObserver(look).observe(root, { subtree: true, childList: true, characterData: true });
});
const said = async (page) => { for (const s of await page.evaluate(() => window.said.splice(0))) lines.push(`says: ${JSON.stringify(s)}`); };

/** tabs writes down where the Tab key leads, once around. */
async function tabs({ page }) {
  const at = () => page.evaluate(() => {
    let e = document.activeElement;
    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return e && e !== document.body ? `${e.localName} ${e.getAttribute("aria-label") || e.placeholder || e.textContent.trim().slice(0, 40)}` : "the browser";
  });
  const first = await at();
  const seen = [first];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    const here = await at();
    if (here === first) break;
    seen.push(here);
  }
  lines.push(`Tab: ${seen.join(" → ")}`);
}
const focus = async (page, when) => lines.push(`focus ${when}: ${await page.evaluate(() => {
  let e = document.activeElement;
  while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  return e?.id || e?.getAttribute("aria-label") || e?.localName;
})}`);

{
  const there = await visit("");
  const { page } = there;
  await tell("closed", there);
  await page.locator("#opener").click();
  await page.getByRole("combobox").waitFor();
  await page.waitForFunction(() => document.querySelector("docent-assistant").shadowRoot.activeElement?.localName === "input");
  await listen(page);
  await tell("opened", there);
  await tabs(there);
  await page.getByRole("combobox").fill("boat");
  await page.getByRole("option").nth(2).waitFor();
  await tell("results while typing", there);
  await said(page);
  await page.keyboard.press("ArrowDown");
  await tell("the first result is chosen", there);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.locator("article").waitFor();
  await tell("asked", there);
  await said(page);
  goOn(); // the stream begins
  goOn();
  await page.locator(".answer pre").waitFor();
  await tell("the answer is being written", there);
  await said(page);
  goOn();
  await page.locator(".answer table").waitFor();
  goOn();
  await page.locator("article[aria-busy=false] .sources").waitFor();
  await tell("answered, with numbered citations and follow-ups", there);
  await said(page);
  await tabs(there);
  await page.getByRole("button", { name: "Not helpful" }).click();
  await page.getByRole("button", { name: "Not helpful", pressed: true }).waitFor(); // it is stored: its answer comes before that of the comment
  await page.getByLabel("What was wrong or missing?").waitFor();
  await page.getByLabel("What was wrong or missing?").fill("no picture");
  await page.keyboard.press("Enter");
  await page.getByText("Thank you.").waitFor();
  await tell("rated", there);
  await said(page);
  fails = "Too many questions came from your network today. Please try again in 3 hours.";
  await page.getByRole("textbox", { name: "Ask a follow-up question" }).fill("And then?");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await tell("a question that is refused", there);
  await said(page);
  fails = "";
  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByRole("button", { name: "How do I moor a boat?" }).waitFor();
  await tell("earlier conversations", there);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await focus(page, "after closing");
  await tell("closed again", there);
  await page.context().close();
}
{
  const there = await visit("?lang=ar");
  await there.page.keyboard.press("Control+k");
  await there.page.getByRole("combobox").waitFor();
  await there.page.waitForFunction(() => document.querySelector("docent-assistant").shadowRoot.activeElement?.localName === "input");
  await there.page.getByRole("combobox").fill("boat");
  await there.page.getByRole("option").nth(2).waitFor();
  await tell("from right to left, results", there);
  lines.push(`direction: ${await there.page.locator("dialog").evaluate((e) => getComputedStyle(e).direction)}, language: ${await there.page.locator("dialog").getAttribute("lang")}`);
  await there.page.context().close();
}
await browser.close();
server.close();
server.closeAllConnections();
console.log(lines.join("\n").trim());
