// Which pages there are: the program's own table of routes, with an address for each that some other page leads to.
import { problem, sent, settings } from "./harness.mjs";

const samples = 2; // addresses of one pattern that are looked at

/** furnish makes what no other page leads to: an invitation, two projects in the wizard, readings of the sources. */
export async function furnish(context) {
  const page = await context.newPage();
  const button = (name) => page.getByRole("button", { name, exact: true });
  const here = () => new URL(page.url()).pathname;
  const paths = (settings.paths ??= []);
  await page.goto(`${settings.server}/console/${settings.org}/people`);
  await button("Create invite link").click();
  paths.push(new URL((await page.locator("code", { hasText: "/invite/" }).innerText()).trim()).pathname);

  for (const name of ["reef", "shoal"]) { // one is left on its way, the other has come to its keys
    await page.goto(`${settings.server}/console/setup`);
    await page.getByLabel("Where is your documentation?").fill(settings.folder);
    await page.getByText("Advanced options").click();
    await page.getByLabel("Name of the project").fill(name);
    await button("Continue").click();
    await page.getByRole("heading", { level: 1, name: /^Review/ }).waitFor();
    if (name === "reef") paths.push(here());
  }
  await page.getByLabel("Domain").fill("shoal.example.com");
  await button("Index docs").click();
  await page.getByRole("heading", { level: 1, name: /is indexed$/ }).waitFor();
  const shoal = here().replace(/\/indexing$/, "");
  paths.push(`${shoal}/question`, `${shoal}/keys`);

  const project = `${settings.server}/console/${settings.org}/${settings.domain}`;
  await page.goto(`${project}/sources`);
  await sent(page, button("Check all pages").first());
  await page.goto(`${project}/sources`);
  await button("Re-index").click();
  await page.waitForURL("**/sources/updates/**");
  paths.push(here());
  await page.goto(`${project}/settings`);
  await page.getByLabel("Leave out").fill("drafts/");
  await sent(page, button("Save changes"));
  await page.goto(`${settings.server}/console/system/models`); // a model that nothing uses
  await page.locator("#name").fill("spare");
  await page.locator("#base_url").fill("http://127.0.0.1:9/v1");
  await page.locator("#model").fill("small");
  for (const use of ["answers", "agent"]) await page.locator(`#${use}`).uncheck();
  await sent(page, button("Connect"));
  // What the playground shows of a question, at an address of its own.
  await page.goto(`${project}/playground`);
  await page.getByLabel("Question or words to search for").fill("How do I install Tidepool?");
  await button("Ask").click();
  await page.getByRole("heading", { name: /^Passages retrieved/ }).waitFor();
  (settings.more ??= []).push(new URL(page.url()).pathname + new URL(page.url()).search);
  await page.close();
}

/** sitemap follows links from the addresses that are known, until each route for reading has an address. */
export async function sitemap(context) {
  const cookie = (await context.cookies()).map((c) => `${c.name}=${c.value}`).join("; ");
  const routes = settings.routes.map((pattern) => ({
    pattern, found: [],
    matches: new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll(/\*\w+/g, "(.+)").replaceAll(/:\w+/g, "([^/?#]+)")}$`),
    known: pattern.replace(":org", settings.org).replace(":domain", settings.domain),
  }));
  const add = (path) => {
    const { pathname } = new URL(path, settings.server);
    // The most particular pattern: one without a parameter goes before one with.
    const [route] = routes.filter((r) => r.matches.test(pathname)).sort((a, b) => a.pattern.split(/[:*]/).length - b.pattern.split(/[:*]/).length);
    if (!route) other.add(pathname);
    if (!route || settings.left[route.pattern] || route.found.length >= samples || route.found.some((f) => f.path === path)) return;
    route.found.push({ name: route.pattern.replace("/console/:org/:domain", "…"), path });
    queue.push(path);
  };
  const queue = [];
  const other = new Set(); // addresses of no page: of the API, of documents
  for (const r of routes) if (!/[:*]/.test(r.known)) add(r.known);
  for (const path of settings.paths ?? []) add(path);
  const pages = new Map();
  for (let path; (path = queue.shift()); ) {
    const stop = new AbortController();
    const response = await fetch(settings.server + path, { headers: { cookie, accept: "text/html" }, redirect: "manual", signal: stop.signal });
    const kind = response.headers.get("content-type") ?? "";
    if (response.status >= 400) problem(path, `answers ${response.status}: ${(await response.text()).match(/<main[^]*<\/main>/)?.[0].replaceAll(/<[^>]*>\s*/g, " ").slice(0, 300)}`);
    if (response.status !== 200 || !kind.startsWith("text/html")) {
      console.log(`not looked at: ${path}, ${response.status} ${kind} ${response.headers.get("location") ?? ""}`);
      stop.abort();
      continue;
    }
    const html = await response.text();
    for (const [, link] of html.matchAll(/\s(?:href|hx-get)="([^"#]+)/g)) {
      const url = new URL(link.replaceAll("&amp;", "&").replaceAll("&#43;", "+"), settings.server + path);
      if (url.origin === new URL(settings.server).origin && url.search === "") add(url.pathname);
    }
    if (/^<!doctype html>/i.test(html)) pages.set(path, true);
    else console.log(`not looked at: ${path} is a part of a page`);
  }
  for (const path of other) {
    const { status } = await fetch(settings.server + path, { headers: { cookie }, redirect: "manual" });
    if (status === 404) problem("the console", `a link leads to ${path}, which there is not`);
  }
  for (const r of routes) {
    const stream = /\/(live|answer|answers\/:thread)$/.test(r.pattern); // events for a page that is looked at
    if (r.found.length === 0 && !stream && !settings.left[r.pattern]) problem("the console", `no page leads to ${r.pattern}`);
  }
  return routes.flatMap((r) => r.found).filter((f) => pages.has(f.path)).concat((settings.more ?? []).map((path) => ({ name: `${path.split("?")[0].split("/").at(-1)}, filled`, path })));
}
