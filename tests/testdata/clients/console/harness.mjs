// What the console's scripts share: people with browsers of their own, pages that remember all that goes wrong in them, and
// what is looked at on every page.
import { mkdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const settings = JSON.parse(process.env.DOCENT_CONSOLE);

const browser = await chromium.launch({
  executablePath: settings.chromium,
  args: ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
export const version = browser.version();
const axeSource = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const patience = 120_000; // milliseconds that anything may take: a machine may be busy with much else

export const problems = [];
export const problem = (where, what) => problems.push(`${where}: ${what}`);

/** person opens a browser of somebody's own, with cookies of its own. What goes wrong on its pages is a problem. */
export async function person(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 844 }, timezoneId: "Europe/Helsinki", locale: "en-GB", ...options });
  context.setDefaultTimeout(patience);
  // Violations of the policy are console errors too; this says what was refused.
  if (options.javaScriptEnabled !== false) {
    await context.addInitScript(() => addEventListener("securitypolicyviolation",
      (e) => console.error(`the policy refuses ${e.violatedDirective} ${e.blockedURI} ${e.sample ?? ""}`)));
  }
  context.on("page", (page) => {
    page.expected = []; // statuses that the script asks for: the browser's own line about them is no problem
    page.on("pageerror", (error) => problem(name, `${page.url()}: ${error.stack ?? error}`));
    page.on("console", (m) => {
      if (m.type() !== "error" || page.expected.some((status) => m.text().includes(`status of ${status}`))) return;
      problem(name, `${page.url()}: the browser's console says ${m.text()} (${m.location().url})`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^https?:$/.test(url.protocol) && url.origin !== new URL(settings.server).origin && !settings.foreign?.includes(url.origin)) {
        problem(name, `${page.url()} asks another host: ${request.url()}`);
      }
    });
    page.on("crash", () => problem(name, `${page.url()}: the page crashed`));
  });
  context.called = name;
  return context;
}

/** enter signs somebody in: by the one-time link of the server. */
export async function enter(context, link = settings.enter) {
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole("button", { name: "Continue" }).click(); // a link is followed by programs too; a button is not
  await page.waitForURL("**/console**");
  await page.close();
}

/** sent clicks what sends a form, and returns once the page that the server answers has come: who goes on at once may be there before the
 * server, or take the page away before it has sent anything. */
export async function sent(page, button) {
  const answered = page.waitForEvent("framenavigated");
  await button.click();
  await answered;
}

/** until asks again and again whether something is so, where the page itself shows no sign of it. */
export async function until(what, holds) {
  const began = Date.now();
  while (!(await holds())) {
    if (Date.now() - began > patience) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** axe names what keeps people out of the page as it is shown now. */
export async function axe(page, where) {
  await page.evaluate(axeSource); // by the debugger's protocol, which the page's policy does not bind
  const { violations } = await page.evaluate(() => globalThis.axe.run({
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  }));
  for (const v of violations) {
    problem(where, `${v.id}, ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 200)} (${n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? ""})`).join(" | ")}`);
  }
}

/** fits says where a page is wider than its window. */
export async function fits(page, where) {
  const wide = await page.evaluate(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return null;
    const inside = (e) => { // of what scrolls by itself
      for (let p = e.parentElement; p; p = p.parentElement) if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return true;
      return false;
    };
    const out = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > clientWidth + 1 && !inside(e));
    return `${scrollWidth - clientWidth} px: ${out.slice(-3).map((e) => e.outerHTML.slice(0, 120)).join(" | ")}`;
  });
  if (wide) problem(where, `the page is too wide by ${wide}`);
}

/** shot keeps a picture. */
export async function shot(page, file, options = {}) {
  mkdirSync(new URL(".", `file://${file}`).pathname, { recursive: true });
  await page.screenshot({ path: file, ...options });
}

let steps = 0;
/** step runs a part of a story and says how long it took; where it fails, what the page showed. */
export async function step(title, page, run) {
  const began = performance.now();
  try {
    await run();
  } catch (error) {
    console.log(`not ok ${++steps} - ${title}\n${error.stack}`);
    for (const p of problems) console.log(`problem: ${p}`);
    if (page) console.log(`the page ${page.url()} showed:\n${await page.locator("body").ariaSnapshot().catch((e) => e.message)}`);
    if (page && settings.out) await shot(page, `${settings.out}/failed.png`, { fullPage: true }).catch(() => {});
    await browser.close();
    process.exit(1);
  }
  console.log(`ok ${++steps} - ${title} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}

/** end closes the browser and says what was wrong, a line each. */
export async function end() {
  await browser.close();
  for (const p of new Set(problems)) console.log(`problem: ${p}`);
  process.exit(problems.length > 0 ? 1 : 0);
}
