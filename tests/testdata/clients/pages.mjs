// The server's own pages in a real browser, as a maintainer uses them: on a phone and a screen, in light and in dark. axe looks for
// what keeps people out. Prints what is wrong, a line each.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const { server, pull, key, chromium: executablePath } = JSON.parse(process.env.DOCENT_PAGES);
const problems = [];
const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

for (const [name, width, colorScheme] of [["a phone", 390, "light"], ["a screen in the dark", 1280, "dark"]]) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => problems.push(`on ${name}: ${error}`));
  page.on("console", (m) => m.type() === "error" && !m.text().includes("404") && problems.push(`on ${name}: ${m.text()}`));
  const look = async (what) => {
    await page.evaluate(axe); // by the debugger's protocol, which the page's policy does not bind
    const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
    for (const v of violations) problems.push(`on ${name}, ${what}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) problems.push(`on ${name}, ${what}: the page is ${wide} pixels too wide`);
  };
  await page.goto(server + "/");
  await look("the first page");
  await page.goto(server + "/pulls/pul_00000000000000000000000000");
  await look("an error");
  await page.goto(`${server}/login?next=${new URL(pull).pathname}`);
  await look("the sign-in form");
  await page.getByText("Sign in with an admin key").click();
  await page.getByLabel("Admin key").fill(key);
  await Promise.all([page.waitForURL(pull), page.getByRole("button", { name: "Sign in with the key" }).click()]);
  await look("the pull request");

  // A file at the end of the page is opened: its changes come, and what a maintainer decides stays in view.
  const last = page.locator("details.file").last();
  if (await last.getAttribute("open") !== null) problems.push(`on ${name}: the last file is open from the start`);
  await last.locator("summary").focus(); // and not under the bar that stays in view
  await page.keyboard.press("Enter");
  await last.locator("tr.add").first().waitFor();
  const merge = await page.getByRole("button", { name: "Merge" }).boundingBox();
  if (!merge || merge.y < 0 || merge.y + merge.height > 844) problems.push(`on ${name}: the button to merge is out of view: ${JSON.stringify(merge)}`);
  await look("the pull request with an opened file");
  await context.close();
}
await browser.close();
for (const p of problems) console.log(p);
