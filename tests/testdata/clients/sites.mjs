// One example site in a real browser, with the widget as its owner added it: in light and dark, by keyboard alone, from page to page, and
// on a phone. Prints what is wrong, a line each.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { complete } from "./reader.mjs";

const s = JSON.parse(process.env.DOCENT_SITE);
const problems = [];
process.on("exit", () => problems.forEach((p) => console.log(p))); // also where something was waited for in vain
const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const browser = await chromium.launch({ executablePath: s.chromium, args: ["--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--ignore-certificate-errors", `--host-resolver-rules=${s.hosts}`] });

/** visit opens a page of the site and watches what it loads and complains of. */
async function visit(name, options, start = s.start) {
  const say = (what) => problems.push(`${name}: ${what}`);
  const check = (what, ok, got = "") => ok || say(`${what} ${typeof got === "string" ? got.slice(0, 300) : JSON.stringify(got)}`);
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => say(error));
  page.on("console", (m) => m.type() === "error" && say(`the console says ${m.text()}`));
  page.on("request", (r) => { const at = new URL(r.url()); if (/^(http|ws)/.test(at.protocol) && ![s.site, s.docent].includes(at.origin)) say(`a request to ${r.url()}`); });
  page.on("response", (r) => r.status() >= 400 && say(`${r.status()} for ${r.url()}`));
  await page.goto(s.site + start, { waitUntil: "load" });
  await page.locator("docent-assistant").waitFor({ state: "attached" });
  return { context, page, check, say };
}

const dialogOf = (page) => page.locator("docent-assistant dialog");
const open = async (page) => { await page.keyboard.press(s.shortcut); await dialogOf(page).waitFor(); };
const close = async (page) => { await page.keyboard.press("Escape"); await dialogOf(page).waitFor({ state: "hidden" }); };
const colours = (page) => page.evaluate(() => {
  const host = document.querySelector("docent-assistant"), { color, backgroundColor } = getComputedStyle(host.shadowRoot.querySelector("dialog"));
  return { shown: host.dataset.shown, color, backgroundColor };
});

async function accessible(page, check) {
  await page.evaluate(axe); // by the debugger's protocol, which the site's policy does not bind
  const { violations, passes } = await page.evaluate(() => axe.run("docent-assistant", { resultTypes: ["violations"] }));
  check("axe looked at nothing", passes.length > 5, passes.length);
  for (const v of violations) check(v.help, false, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "));
}

/** headingIsShown is whether the browser is at the page and the heading that a source names, with nothing over it. */
const headingIsShown = (page, address) => page.waitForFunction((address) => {
  if (location.href !== address || document.querySelector("docent-assistant")?.shadowRoot.querySelector("dialog")?.open) return false;
  const at = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.getBoundingClientRect();
  return at !== undefined && at.top > -40 && at.top < innerHeight;
}, address).then(() => true, () => false);

for (const scheme of ["light", "dark"]) {
  const { context, page, check } = await visit(scheme, { colorScheme: scheme });
  await page.locator("docent-assistant").getByRole("button", { name: "Ask the documentation" }).waitFor();
  if (s.ownSearch) {
    // The shortcut of VitePress is there once its program has taken over the page.
    await page.waitForFunction(() => document.querySelector("#app")?.__vue_app__ !== undefined);
    await page.keyboard.press("Control+k");
    await page.locator(s.ownSearch).first().waitFor();
    check("the site's own search is there, and the assistant as well", await page.locator("docent-assistant dialog[open]").count() === 0);
    await page.keyboard.press("Escape");
    await page.locator(s.ownSearch).first().waitFor({ state: "hidden" });
  }

  const opener = page.locator("[data-docent-open]").locator("visible=true").first(); // the site's own button, where it has one
  if (await opener.count()) {
    await opener.click();
    await dialogOf(page).waitFor();
    await close(page);
  }

  // A question, by keyboard alone.
  await open(page);
  check("the dialog's colours", (await colours(page)).shown === scheme, await colours(page));
  const stream = page.waitForResponse((r) => r.request().method() === "POST" && r.url().endsWith("/message"));
  await page.keyboard.type(s.question);
  await page.keyboard.press("Enter");
  const response = await stream;
  check("the answer comes as a stream", (response.headers()["content-type"] ?? "").startsWith("text/event-stream"), response.headers());
  await complete(page);
  const answer = await page.locator("docent-assistant .answer").last().textContent();
  check("the answer", answer.includes(s.says), answer);
  await accessible(page, check);

  // Its source, by keyboard alone: the page of this very site, at its heading.
  const source = page.locator("docent-assistant .sources a").first();
  check("the source", await source.getAttribute("href") === s.site + s.cites, await source.getAttribute("href"));
  const focused = () => source.evaluate((a) => a.getRootNode().activeElement === a);
  for (let i = 0; i < 30 && !(await focused()); i++) await page.keyboard.press("Tab");
  check("Tab reaches the source", await focused());
  await page.keyboard.press("Enter");
  check("the source opens the page at its heading", await headingIsShown(page, s.site + s.cites), page.url());

  // The site's own navigation.
  await page.locator("docent-assistant").waitFor({ state: "attached" }); // some sites load it after all else
  await page.evaluate(() => { document.querySelector("docent-assistant").stays = true; });
  await page.getByRole("link", { name: s.next, exact: true }).locator("visible=true").first().click();
  await page.getByRole("heading", { level: 1, name: s.leads }).waitFor();
  const stays = await page.evaluate(() => document.querySelector("docent-assistant")?.stays ?? false);
  check(`the widget stays over navigation: ${stays}, wanted`, stays === s.client, s.client);
  await page.locator("docent-assistant").first().waitFor({ state: "attached" }); // the heading may be there before the script has run
  check("one widget is on the page", await page.locator("docent-assistant").count() === 1);
  await open(page);
  await complete(page).catch(() => {}); // the check says what is missing
  const kept = await page.locator("docent-assistant article").allTextContents();
  check("the conversation is there on the next page", kept.length === 1 && kept[0].includes(s.says), kept);

  // Light and dark as the site has it.
  const before = await colours(page);
  await close(page);
  const toggle = page.locator(s.toggle).locator("visible=true").first();
  const other = scheme === "dark" ? "light" : "dark";
  const change = async () => {
    if (await toggle.evaluate((e) => e.tagName === "SELECT")) return toggle.selectOption(other);
    await toggle.click();
    if (s.choices) await page.getByRole("option", { name: other }).click();
  };
  const look = () => page.evaluate(() => getComputedStyle(document.querySelector("h1")).color);
  /** chosen is what the site says of itself and keeps, where that is not what it was. */
  const chosen = (was) => {
    const is = JSON.stringify([{ ...localStorage }, ...[document.documentElement, document.body].flatMap((e) => [...e.attributes].map((a) => [a.name, a.value]))]);
    return is === was ? "" : is;
  };
  const looked = await look();
  for (let i = 0; i < 3 && await look() === looked; i++) { // some go from what the system has to the same, chosen
    const was = await page.evaluate(chosen);
    await change();
    await page.waitForFunction(chosen, was).catch(() => {});
    await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished)));
  }
  check("the toggle changes the site", await look() !== looked, looked);
  await page.waitForFunction((other) => document.querySelector("docent-assistant").dataset.shown === other, other).catch(() => {});
  await open(page);
  const after = await colours(page);
  check("the site's toggle changes the widget", after.shown === other && after.color !== before.color && after.backgroundColor !== before.backgroundColor, [before, after]);
  await accessible(page, check);
  await context.close();
}

// A phone, on the very page that the answer is on.
{
  const { context, page, check } = await visit("a phone", { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark" }, s.cites.split("#")[0]);
  const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check("the page is too wide by", await tooWide() <= 0, await tooWide());
  await page.locator("docent-assistant").getByRole("button", { name: "Ask the documentation" }).tap();
  await page.locator("docent-assistant").getByRole("combobox").fill(s.question);
  await page.locator("docent-assistant").getByRole("option").first().tap();
  await complete(page);
  const box = await dialogOf(page).boundingBox();
  check("the dialog has the screen", box.x === 0 && box.width === 390, box);
  check("the page is too wide with the answer by", await tooWide() <= 0, await tooWide());
  await accessible(page, check);
  await page.locator("docent-assistant .sources a").first().tap();
  check("the source opens the page at its heading", await headingIsShown(page, s.site + s.cites), page.url());
  await context.close();
}

await browser.close();
