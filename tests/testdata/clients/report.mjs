// The load report in a real browser, opened from the disk: it asks for nothing, fits a phone and a sheet of paper, and no
// letter of its plots lies outside of them or over another. Prints what is wrong, a line each.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const { page: address, chromium: executablePath, pdf } = JSON.parse(process.env.DOCENT_REPORT);
const problems = [];
const browser = await chromium.launch({ executablePath, args: ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

const axe = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const millimetre = 96 / 25.4;
for (const [name, width, media, scheme] of [
  ["a phone", 390, "screen", "light"], ["a phone in the dark", 390, "screen", "dark"], ["a screen", 1280, "screen", "light"],
  ["paper", Math.floor((210 - 2 * 14) * millimetre), "print", "light"], // A4 within its margins
]) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme: scheme });
  const page = await context.newPage();
  page.on("request", (r) => r.url() !== address && problems.push(`on ${name} it asks for ${r.url()}`));
  page.on("pageerror", (e) => problems.push(`on ${name}: ${e}`));
  await page.emulateMedia({ media, colorScheme: scheme });
  await page.goto(address);
  const found = await page.evaluate((media) => {
    const out = [];
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) out.push(`it is ${document.documentElement.scrollWidth} wide, not ${width}`);
    for (const box of document.querySelectorAll("svg, table")) {
      const r = box.getBoundingClientRect();
      const scrolls = media === "screen" && box.closest(".scroll"); // a table may scroll in its own box
      if (!scrolls && (r.left < -0.5 || r.right > width + 0.5)) out.push(`a ${box.tagName} reaches from ${r.left} to ${r.right} of ${width}`);
    }
    const drawings = [...document.querySelectorAll("svg")];
    if (drawings.length === 0) out.push("it has no plots");
    for (const svg of drawings) {
      const title = svg.closest("figure").querySelector("b").textContent;
      const around = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].map((t) => ({ text: t.textContent, r: t.getBoundingClientRect() })).filter((t) => t.text);
      for (const { text, r } of texts) {
        if (r.left < around.left - 1 || r.right > around.right + 1 || r.top < around.top - 1 || r.bottom > around.bottom + 1) out.push(`${title}: "${text}" is cut off`);
      }
      for (const [i, a] of texts.entries()) {
        for (const b of texts.slice(i + 1)) {
          const across = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left);
          const down = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
          if (across > 1 && down > 3) out.push(`${title}: "${a.text}" lies over "${b.text}"`);
        }
      }
      for (const line of svg.querySelectorAll("path, circle")) {
        const r = line.getBoundingClientRect();
        if (r.left < around.left - 1 || r.right > around.right + 1 || r.top < around.top - 1 || r.bottom > around.bottom + 1) {
          out.push(`${title}: a line leaves the plot`);
          break;
        }
      }
    }
    const light = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0);
    const style = getComputedStyle(document.body);
    const letters = drawings.length > 0 ? light(getComputedStyle(drawings[0].querySelector("text")).fill) : 0;
    const dark = media === "screen" && matchMedia("(prefers-color-scheme: dark)").matches;
    if ((light(style.backgroundColor) > light(style.color)) === dark || (letters > 382) !== dark) out.push(`letters ${style.color} (${letters} in plots) on ${style.backgroundColor}`);
    return out;
  }, media);
  problems.push(...found.map((p) => `on ${name}: ${p}`));
  if (media === "screen") {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
    problems.push(...violations.map((v) => `on ${name}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`));
  }
  if (media === "print") await page.pdf({ path: pdf, preferCSSPageSize: true });
  await context.close();
}
await browser.close();
for (const p of new Set(problems)) console.log(p);
