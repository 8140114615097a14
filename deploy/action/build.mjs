// Builds the action's one file, dist/main.js, which is committed: GitHub runs it as it is. --check compares and changes nothing.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const at = new URL(".", import.meta.url).pathname;
const { outputFiles } = await build({
  entryPoints: ["src/main.ts"], absWorkingDir: at, bundle: true, write: false, platform: "node", target: "node20", format: "esm", charset: "utf8",
  legalComments: "inline", banner: { js: "// Built by scripts/build-action from deploy/action/src and api/typescript. Do not edit." },
});
const file = at + "dist/main.js";
const built = outputFiles[0].contents;
if (process.argv.includes("--check")) {
  if (!existsSync(file) || Buffer.compare(readFileSync(file), built) !== 0) throw new Error("deploy/action/dist is not what its sources make: run scripts/build-action");
} else {
  mkdirSync(at + "dist", { recursive: true });
  writeFileSync(file, built);
}
