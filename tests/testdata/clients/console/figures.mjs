// How quick the pages are, by the browser's own timing: the median of several loads with nothing cached. Prints a table.
import { end, enter, person, settings, step, version } from "./harness.mjs";
import { furnish, sitemap } from "./sitemap.mjs";

const loads = 9;
const owner = await person("the owner");
await enter(owner);
let pages;
await step("the site is furnished, and its pages are found", null, async () => {
  await furnish(owner);
  pages = await sitemap(owner);
});
const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

const page = await owner.newPage();
const cdp = await owner.newCDPSession(page);
await cdp.send("Network.enable");
await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
let bytes = 0, requests = 0;
cdp.on("Network.loadingFinished", (e) => { bytes += e.encodedDataLength; requests++; });
await page.goto(settings.server + "/login", { waitUntil: "load" }); // the browser itself is warm

console.log(`Chromium ${version}, ${loads} loads of each page, nothing cached`);
console.log("");
console.log("| page | server, ms | first content, ms | loaded, ms | weight, KB | requests |\n| --- | --- | --- | --- | --- | --- |");
let slowest = 0, heaviest = 0;
for (const { name, path } of pages) {
  const runs = [];
  for (let i = 0; i < loads; i++) {
    bytes = requests = 0;
    await page.goto(settings.server + path, { waitUntil: "load" });
    const painted = await page.evaluate(() => new Promise((resolve) => {
      const at = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
      if (at()) resolve(at());
      else new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach((e) => resolve(e.startTime))).observe({ type: "paint", buffered: true });
    }));
    const [navigation] = await page.evaluate(() => performance.getEntriesByType("navigation").map((e) => ({ server: e.responseStart - e.requestStart, loaded: e.loadEventEnd })));
    runs.push({ ...navigation, painted, bytes, requests });
  }
  const of = (key) => median(runs.map((run) => run[key]));
  slowest = Math.max(slowest, of("painted"));
  heaviest = Math.max(heaviest, of("bytes"));
  console.log(`| \`${name}\` | ${of("server").toFixed(1)} | ${of("painted").toFixed(0)} | ${of("loaded").toFixed(0)} | ${(of("bytes") / 1000).toFixed(1)} | ${of("requests")} |`);
}
console.log("");
console.log(`slowest first content ${slowest.toFixed(0)} ms (300 are asked for), heaviest ${(heaviest / 1000).toFixed(1)} KB (150 are asked for)`);
await end();
