// Every page of the console, as a table of the program lists them: what axe finds in light and in dark, the width of a phone, the
// keyboard, no JavaScript, layout shifts, weight, and what the browser itself complains of. Prints what is wrong, a line each.
import { axe, end, enter, fits, person, problem, settings, step } from "./harness.mjs";
import { sitemap } from "./sitemap.mjs";

const phone = { width: 390, height: 844 };
const screen = { width: 1280, height: 844 };
const weightMax = 150_000; // bytes over the wire, for a page with nothing cached
const shiftMax = 0.05;

const owner = await person("the owner");
await enter(owner);
const pages = await sitemap(owner);
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

/** settled returns when a page has drawn what it had to draw. */
const settled = (page) => page.evaluate(() => document.fonts.ready.then(() => new Promise((resolve) => requestAnimationFrame(() => requestIdleCallback(resolve, { timeout: 500 })))));

// What a page weighs and how it moves while it loads, by the browser's own figures.
const observe = () => {
  globalThis.shifts = [];
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.shifts.push({ value: e.value, nodes: e.sources.map((s) => s.node?.outerHTML?.slice(0, 100)) });
  }).observe({ type: "layout-shift", buffered: true });
};

async function looks(scheme) {
  const { context, page } = await visitor(`in ${scheme}`, { colorScheme: scheme, viewport: screen });
  await context.addInitScript(observe);
  for (const { name, path } of pages) {
    const where = `${name} (${path}) in ${scheme}`;
    try {
      await page.setViewportSize(screen);
      await open(page, path);
      await settled(page);
      const shifts = await page.evaluate(() => globalThis.shifts);
      const moved = shifts.reduce((sum, s) => sum + s.value, 0);
      if (moved > shiftMax) problem(where, `the layout shifts by ${moved.toFixed(3)}: ${JSON.stringify(shifts)}`);
      await axe(page, where);
      await page.setViewportSize(phone);
      await settled(page);
      await fits(page, where);
      await axe(page, `${where}, on a phone`);
    } catch (error) {
      problem(where, error.message);
    }
  }
  await context.close();
}

// Tab reaches whatever can be used, in the order of the page; what has the focus shows it and is not covered.
async function keyboard() {
  const { context, page } = await visitor("with the keyboard", { viewport: screen });
  for (const { name, path } of pages) {
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
          const e = document.activeElement;
          if (!e || e === document.body) return { body: true };
          const style = getComputedStyle(e);
          const target = e.matches("summary, input[type=radio], input[type=checkbox]") ? e : e;
          const r = target.getBoundingClientRect();
          const x = Math.min(Math.max(r.left + Math.min(r.width / 2, 40), 0), innerWidth - 1), y = Math.min(Math.max(r.top + Math.min(r.height / 2, 12), 0), innerHeight - 1);
          const top = document.elementFromPoint(x, y);
          return {
            stop: e.tabStop ?? `added ${e.outerHTML.slice(0, 80)}`,
            shown: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
            covered: top && e !== top && !e.contains(top) && !top.contains(e) && !(e.labels && [...e.labels].some((l) => l.contains(top))) ? top.outerHTML.slice(0, 100) : "",
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
  const { context, page } = await visitor("without JavaScript", { javaScriptEnabled: false });
  const { context: other, page: scripted } = await visitor("with JavaScript", {});
  for (const { name, path } of pages) {
    const where = `${name} (${path}) without JavaScript`;
    try {
      await open(page, path);
      await open(scripted, path);
      const [plain, full] = await Promise.all([page, scripted].map((p) => p.getByRole("heading", { level: 1 }).first().innerText()));
      if (!plain || plain !== full) problem(where, `its heading is ${JSON.stringify(plain)}, with JavaScript ${JSON.stringify(full)}`);
      const words = (text) => text.split(/\s+/).filter(Boolean).length;
      const [there, all] = await Promise.all([page, scripted].map((p) => p.getByRole("main").innerText().then(words)));
      if (there < 0.8 * all) problem(where, `shows ${there} of the ${all} words`);
    } catch (error) {
      problem(where, error.message);
    }
  }
  await Promise.all([context.close(), other.close()]);
}

// What the browser loads for a page with nothing cached.
async function weight() {
  for (const { name, path } of pages) {
    const { context, page } = await visitor(`${name}, loaded anew`, {});
    const cdp = await context.newCDPSession(page);
    await cdp.send("Network.enable");
    let bytes = 0;
    const parts = [];
    const urls = new Map();
    cdp.on("Network.requestWillBeSent", (e) => urls.set(e.requestId, e.request.url));
    cdp.on("Network.loadingFinished", (e) => {
      bytes += e.encodedDataLength;
      parts.push(`${new URL(urls.get(e.requestId)).pathname} ${e.encodedDataLength}`);
    });
    try {
      await open(page, path);
      await settled(page);
      if (bytes > weightMax) problem(`${name} (${path})`, `weighs ${bytes} bytes: ${parts.join(", ")}`);
      console.log(`${name} weighs ${bytes} bytes`);
    } catch (error) {
      problem(`${name} (${path})`, error.message);
    }
    await context.close();
  }
}

const looksAt = { light: () => looks("light"), dark: () => looks("dark"), keyboard, withoutScript, weight };
for (const [what, look] of Object.entries(looksAt)) {
  if (settings.only && settings.only !== what) continue;
  await step(what, null, look);
}
await end();
