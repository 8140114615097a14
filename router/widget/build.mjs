// Builds the widget into dist: v1.js, which every page loads, and the rest, under a name with its hash. --check compares with what is
// there and changes nothing.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const at = new URL(".", import.meta.url).pathname;
const common = { bundle: true, minify: true, write: false, target: "es2022", legalComments: "none", absWorkingDir: at, jsx: "automatic", jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"' } };
// What esbuild has made small, terser makes smaller: by a thousand bytes, compressed.
const one = async (options) => {
  const { text } = (await build({ ...common, charset: "utf8", ...options })).outputFiles[0];
  const { code } = await minify(text, { module: true, ecma: 2020, format: { comments: false } });
  return Buffer.from(code);
};

const hashed = (name, bytes) => `${name}.${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}.js`;
const packed = (bytes) => gzipSync(bytes, { level: 9 }).length;

const files = {};
const languages = {};
let longest = 0;
for (const file of readdirSync(at + "src/strings").sort()) {
  const language = file.replace(".ts", "");
  const bytes = await one({ entryPoints: ["src/strings/" + file], format: "esm" });
  languages[language] = hashed("strings-" + language, bytes);
  files[languages[language]] = bytes;
  longest = Math.max(longest, packed(bytes));
}
const solver = await one({ entryPoints: ["src/proof.ts"], format: "esm" }); // for projects that ask for a proof of work
const proof = hashed("proof", solver);
files[proof] = solver;
const panel = await one({ entryPoints: ["src/panel.tsx"], format: "esm", define: { ...common.define, LANGUAGES: JSON.stringify(languages), PROOF: JSON.stringify(proof) } });
const name = hashed("panel", panel);
files[name] = panel;
files["v1.js"] = await one({ entryPoints: ["src/loader.ts"], format: "iife", define: { ...common.define, PANEL: JSON.stringify(name) } });

const [first, all] = [packed(files["v1.js"]), packed(files["v1.js"]) + packed(panel) + longest + packed(solver)];
console.log(`compressed: ${first} bytes before the first use, ${all} with the dialog in the longest language and the solver of proofs of work (${packed(solver)})`);
if (first > 4096) throw new Error("v1.js is larger than 4 KB compressed");
if (all > 48 * 1024) throw new Error("the widget is larger than 48 KB compressed");

const dist = at + "dist/";
if (process.argv.includes("--check")) {
  const there = existsSync(dist) ? readdirSync(dist).sort() : [];
  const same = there.join() === Object.keys(files).sort().join() && there.every((f) => Buffer.compare(readFileSync(dist + f), files[f]) === 0);
  if (!same) throw new Error("router/widget/dist is not what its sources make: run scripts/build-widget");
} else {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(dist);
  for (const [file, bytes] of Object.entries(files)) writeFileSync(dist + file, bytes);
}
