// Every page of the console, as a table of the program lists them: what axe finds in light and in dark, the width of a phone, the
// keyboard, no JavaScript, layout shifts, weight, and what the browser itself complains of. Prints what is wrong, a line each.
import { axe, end, enter, fits, person, problem, sent, settings, step } from "./harness.mjs";
import { furnish, sitemap } from "./sitemap.mjs";

const phone = { width: 390, height: 844 };
const screen = { width: 1280, height: 844 };
const weightMax = 150_000; // bytes over the wire, for a page with nothing cached
const shiftMax = 0.05;

const owner = await person("the owner");
await enter(owner);
let pages;
await step("the site is furnished, and its pages are found", null, async () => {
  await furnish(owner);
  pages = await sitemap(owner);
});
const session = await owner.cookies();

/** visitor is the owner in another browser. */
async function visitor(name, options) {
  const context = await person(name, options);
  await context.addCookies(session);
  return { context, page: await context.newPage() };
}

const open = async (page, path) => {
  const status = settings.statuses?.[path] ?? 200;
  page.expected = status === 200 ? [] : [status];
  const response = await page.goto(settings.server + path, { waitUntil: "load" });
  if (response.status() !== status) problem(path, `answers ${response.status()}`);
  return response;
};

/** firsts are the pages with one address of each kind; the others are like them, empty or of another state. */
const firsts = () => pages.filter((p, i) => pages.findIndex((q) => q.name === p.name) === i);

/** settled returns when a page has drawn what it had to draw. */
const settled = (page) => page.evaluate(() => document.fonts.ready.then(() => new Promise((resolve) => requestAnimationFrame(() => requestIdleCallback(resolve, { timeout: 500 })))));

// What a page weighs and how it moves while it loads, by the browser's own figures.
const observe = () => {
  globalThis.shifts = [];
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.shifts.push({ value: e.value, nodes: e.sources.map((s) => s.node?.outerHTML?.slice(0, 100)) });
  }).observe({ type: "layout-shift", buffered: true });
};

// In light on a screen, in dark on a phone: what is hidden at one width is there at the other.
async function looks(scheme) {
  const [first, second] = scheme === "light" ? [screen, phone] : [phone, screen];
  const { context, page } = await visitor(`in ${scheme}`, { colorScheme: scheme, viewport: first });
  await context.addInitScript(observe);
  const loaded = await weighed(page);
  for (const { name, path } of scheme === "light" ? pages : firsts()) {
    const where = `${name} (${path}) in ${scheme}`;
    try {
      await page.setViewportSize(first);
      loaded.length = 0;
      await open(page, path);
      await settled(page);
      const bytes = loaded.reduce((sum, part) => sum + part.bytes, 0);
      if (bytes > weightMax) problem(where, `weighs ${bytes} bytes: ${loaded.map((part) => `${part.path} ${part.bytes}`).join(", ")}`);
      if (scheme === "light") console.log(`${name} weighs ${bytes} bytes`);
      const shifts = await page.evaluate(() => globalThis.shifts);
      const moved = shifts.reduce((sum, s) => sum + s.value, 0);
      if (moved > shiftMax) problem(where, `the layout shifts by ${moved.toFixed(3)}: ${JSON.stringify(shifts)}`);
      shown.set(path, await text(page));
      await axe(page, where);
      await fits(page, where);
      await page.setViewportSize(second);
      await settled(page); // the page is told of its new size before the next frame
      await fits(page, where);
    } catch (error) {
      problem(where, error.message);
    }
  }
  await context.close();
}

/** weighed notes what the browser loads from now on, with nothing cached, as it is on the wire. */
async function weighed(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
  const loaded = [], paths = new Map();
  cdp.on("Network.requestWillBeSent", (e) => paths.set(e.requestId, new URL(e.request.url).pathname));
  cdp.on("Network.loadingFinished", (e) => loaded.push({ path: paths.get(e.requestId), bytes: e.encodedDataLength }));
  return loaded;
}

/** text is what a page says: its heading, and how many words there are. */
const shown = new Map();
const text = async (page) => ({
  heading: await page.getByRole("heading", { level: 1 }).first().evaluate((h) => [...h.childNodes].filter((n) => n.nodeName !== "TIME").map((n) => n.textContent).join("").trim()),
  words: (await page.getByRole("main").innerText()).split(/\s+/).filter(Boolean).length,
});

// Tab reaches whatever can be used, in the order of the page; what has the focus shows it and is not covered.
async function keyboard() {
  const { context, page } = await visitor("with the keyboard", { viewport: screen });
  for (const { name, path } of firsts()) {
    const where = `${name} (${path}) by keyboard`;
    try {
      await open(page, path);
      await settled(page);
      const wanted = await page.evaluate(() => {
        const usable = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) => !e.disabled && e.type !== "hidden" && e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }) && !e.closest("[inert]"));
        // Of the buttons of one question a browser stops at one.
        const groups = new Map();
        usable.forEach((e, i) => (e.tabStop = e.type === "radio" ? `radio ${e.form?.id ?? ""} ${e.name}` : i));
        for (const e of usable) groups.set(e.tabStop, e);
        return groups.size;
      });
      const reached = new Set();
      document: for (let i = 0; i < wanted + 20; i++) {
        await page.keyboard.press("Tab");
        const at = await page.evaluate(() => {
          const host = document.activeElement;
          if (!host || host === document.body) return { body: true };
          const e = host.shadowRoot?.activeElement ?? host;
          const style = getComputedStyle(e);
          const target = e.matches("summary, input[type=radio], input[type=checkbox]") ? e : e;
          const r = target.getBoundingClientRect();
          const x = Math.min(Math.max(r.left + Math.min(r.width / 2, 40), 0), innerWidth - 1), y = Math.min(Math.max(r.top + Math.min(r.height / 2, 12), 0), innerHeight - 1);
          const top = document.elementFromPoint(x, y);
          return {
            stop: host.tabStop ?? `added ${e.outerHTML.slice(0, 80)}`,
            shown: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
            covered: top && e !== top && host !== top && !e.contains(top) && !top.contains(e) && !(e.labels && [...e.labels].some((l) => l.contains(top))) ? top.outerHTML.slice(0, 100) : "",
            small: r.width > 0 && (r.width < 24 || r.height < 24) && style.display !== "inline" && !e.matches("input[type=radio], input[type=checkbox]") ? `${r.width.toFixed(0)}×${r.height.toFixed(0)}` : "",
            what: e.outerHTML.slice(0, 120),
          };
        });
        if (at.body) {
          if (reached.size >= wanted) break document;
          continue;
        }
        if (reached.has(at.stop)) continue;
        reached.add(at.stop);
        if (!at.shown) problem(where, `the focus does not show on ${at.what}`);
        if (at.covered) problem(where, `what has the focus is covered: ${at.what} by ${at.covered}`);
        if (at.small) problem(where, `a target of ${at.small} is under 24 px: ${at.what}`);
      }
      if (reached.size < wanted) problem(where, `Tab reaches ${reached.size} of ${wanted} places`);
    } catch (error) {
      problem(where, error.message);
    }
  }
  await context.close();
}

async function withoutScript() {
  const { context, page } = await visitor("without JavaScript", { javaScriptEnabled: false, viewport: screen });
  for (const { name, path } of firsts()) {
    const where = `${name} (${path}) without JavaScript`;
    try {
      await open(page, path);
      const there = await text(page), all = shown.get(path);
      if (!there.heading || all && there.heading !== all.heading) problem(where, `its heading is ${JSON.stringify(there.heading)}, with JavaScript ${JSON.stringify(all?.heading)}`);
      if (all && there.words < 0.8 * all.words) problem(where, `shows ${there.words} of the ${all.words} words`);
    } catch (error) {
      problem(where, error.message);
    }
  }

  // A key is made, used and revoked.
  const keys = `/console/${settings.org}/${settings.domain}/keys`;
  await open(page, keys);
  await page.getByLabel("Name", { exact: true }).fill("without a script");
  await page.getByRole("button", { name: "Create key" }).click();
  const secret = (await page.locator("code", { hasText: /^dct_pub_\w+$/ }).innerText()).trim();
  const ask = () => fetch(`${settings.server}/discovery/v1/search/${settings.domain}`, {
    method: "POST", headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, body: JSON.stringify({ query: "install" }),
  }).then((r) => r.status);
  const before = await ask();
  const row = page.getByRole("row", { name: /without a script/ });
  await row.getByText("Revoke", { exact: true }).click();
  await sent(page, row.getByRole("button", { name: "Revoke the key" }));
  const after = await ask();
  if (before !== 200 || after !== 401) problem("keys without JavaScript", `a key is answered ${before}, and ${after} when it is revoked`);
  await context.close();
}

// "/" leads to the search, "g" and a letter to a page, "?" lists them. What opens takes the focus, keeps it, and gives it back.
async function shortcuts() {
  const { context, page } = await visitor("with shortcuts", { viewport: screen });
  const base = `/console/${settings.org}/${settings.domain}`;
  const expect = (what, holds) => holds || problem("shortcuts", what);
  const focused = (selector) => page.evaluate((s) => document.activeElement?.matches(s) ?? false, selector);
  await open(page, base);
  await page.keyboard.press("/");
  expect("/ does not lead to the search", await focused("input[type=search]"));
  await page.keyboard.type("g k ? /");
  expect("keys lead away from a field that is typed into", page.url().endsWith(base) && await page.getByRole("searchbox").first().inputValue() === "g k ? /");
  await page.getByRole("link", { name: "API keys", exact: true }).focus();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await dialog.waitFor();
  await axe(page, "the list of shortcuts");
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("Tab");
    expect("Tab leaves the dialog for the page below", await page.evaluate(() => document.activeElement === document.body || !!document.activeElement.closest("dialog")));
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect("the focus does not go back to where it was", await focused("a[data-go=k]"));
  await Promise.all([page.keyboard.press("g"), page.keyboard.press("k")]); // nothing comes between: a letter that is late leads nowhere
  await page.waitForURL(`**${base}/keys`);

  // The menu of the account.
  const menu = page.locator("header details.menu"), summary = menu.locator("summary");
  await summary.focus();
  await page.keyboard.press("Enter");
  expect("Enter does not open the menu", await menu.getAttribute("open") !== null);
  await axe(page, "the open menu");
  await page.keyboard.press("Escape");
  expect("Esc does not close the menu, or loses the focus", await menu.getAttribute("open") === null && await focused("header summary"));

  // The menu of pages, on a phone.
  await page.setViewportSize(phone);
  const button = page.getByRole("button", { name: "Menu" });
  await button.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Overview", exact: true }).waitFor();
  await axe(page, "the menu on a phone");
  await page.keyboard.press("Escape");
  expect("Esc does not close the menu on a phone, or loses the focus", await focused(".menu-button") && !await page.getByRole("link", { name: "Overview", exact: true }).isVisible());
  await context.close();
}

const looksAt = { light: () => looks("light"), dark: () => looks("dark"), withoutScript, keyboard, shortcuts };
for (const [what, look] of Object.entries(looksAt)) {
  if (settings.only && settings.only !== what) continue;
  await step(what, null, look);
}
await end();
