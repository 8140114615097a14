// Runs `docent check-docs` on the runner: it needs no server.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Found {
  pages: string[];
  outdated: number;
  markdown: string;
  annotations: string;
}

/** run gives the binary a diff and returns what it prints. Status 6 says that pages are concerned, which is no failure. */
function run(binary: string, args: string[], diff: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { stdio: ["pipe", "pipe", "inherit"], cwd: process.env["GITHUB_WORKSPACE"] ?? "." });
    const late = setTimeout(() => child.kill(), 300_000); // spawn's own timeout goes on where the binary cannot be run
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => { out += text; });
    child.stdin.on("error", () => {}); // it need not read all of it
    child.on("error", () => { clearTimeout(late); reject(new Error(`binary: ${binary} cannot be run; install docent on the runner first`)); });
    child.on("close", (code) => {
      clearTimeout(late);
      if (code === 0 || code === 6) resolve(out);
      else reject(new Error(`docent check-docs ended with ${code}`));
    });
    child.stdin.end(diff);
  });
}

/** checkDocs names the pages of a folder that a change concerns. */
export async function checkDocs(binary: string, docs: string, diff: string, title: string, sarif: string): Promise<Found> {
  const dir = mkdtempSync(join(process.env["RUNNER_TEMP"] ?? tmpdir(), "docent-"));
  const [json, markdown] = [join(dir, "pages.json"), join(dir, "comment.md")];
  const files = [`json=${json}`, `markdown=${markdown}`, ...(sarif ? [`sarif=${sarif}`] : [])];
  try {
    const annotations = await run(binary, ["check-docs", "--diff", "-", "--docs", docs, "--fail-on", "never", `--message=${title}`,
      "--format", "github", ...files.flatMap((f) => ["--format", f])], diff);
    const { findings } = JSON.parse(readFileSync(json, "utf8")) as { findings: { page: string; level: string }[] };
    return {
      pages: findings.map((f) => f.page), outdated: findings.filter((f) => f.level === "outdated").length,
      markdown: readFileSync(markdown, "utf8"), annotations,
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
