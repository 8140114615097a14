// Pictures of every page of the console, to be looked at, and those that the documentation shows.
import { mkdirSync, writeFileSync } from "node:fs";
import { end, enter, person, problem, settings, shot, step } from "./harness.mjs";
import { furnish, sitemap } from "./sitemap.mjs";

const owner = await person("the owner");
await enter(owner);
let pages;
await step("the site is furnished, and its pages are found", null, async () => {
  await furnish(owner);
  pages = await sitemap(owner);
});
const session = await owner.cookies();
const file = (path) => path.replace(`/console/${settings.org}/${settings.domain}`, "").replace(/^\//, "").replaceAll(/[^\w.-]+/g, "-").slice(0, 60) || "overview";

for (const [width, height] of [[390, 844], [1280, 800], [1920, 1080]]) {
  for (const colorScheme of ["light", "dark"]) {
    if (settings.only && settings.only !== `${width}-${colorScheme}` && settings.only !== colorScheme) continue;
    await step(`${width} pixels, ${colorScheme}`, null, async () => {
      const context = await person(`at ${width} px`, { viewport: { width, height }, colorScheme });
      await context.addCookies(session);
      const page = await context.newPage();
      for (const { path } of pages) {
        await page.goto(settings.server + path, { waitUntil: "load" });
        await shot(page, `${settings.out}/${width}-${colorScheme}/${file(path)}.png`, { fullPage: true });
      }
      await context.close();
    });
  }
}

// What the documentation shows: one screen, light, small enough to stand in a repository.
if (settings.docs) {
  await step("pictures of the documentation", null, async () => {
    const context = await person("for the documentation", { viewport: { width: 1200, height: 750 } });
    await context.addCookies(session);
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    mkdirSync(settings.docs, { recursive: true });
    for (const [name, pattern, open] of settings.pictures) {
      const found = pages.find((p) => p.name === pattern);
      if (!found) { problem(name, `there is no page ${pattern}`); continue; }
      await page.goto(settings.server + found.path, { waitUntil: "load" });
      if (open) await page.getByText(open).first().click();
      await page.evaluate(() => document.fonts.ready);
      await page.evaluate(([folder, server]) => { // where the test happened to run is nothing to read about
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node; (node = texts.nextNode()); ) {
          if (node.data.includes(folder) || node.data.includes(server)) node.data = node.data.replaceAll(folder, "/srv/docs").replaceAll(server, "https://docent.example.com");
        }
      }, [settings.folder, settings.server]);
      for (const quality of [85, 70, 55, 40]) {
        const { data } = await cdp.send("Page.captureScreenshot", { format: "webp", quality });
        const bytes = Buffer.from(data, "base64");
        if (bytes.length >= 60_000) continue;
        writeFileSync(`${settings.docs}/${name}.webp`, bytes);
        console.log(`${name}.webp has ${bytes.length} bytes`);
        break;
      }
    }
  });
}
await end();
