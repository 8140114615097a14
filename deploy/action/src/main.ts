// Gives Docent's agent an instruction, waits for the job, and says how it went; or says which pages a pull request concerns.
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ApiError, Docent, type Job, WaitTimeoutError } from "../../../api/typescript/src/index";
import { checkDocs } from "./checkdocs";
import { GitHub } from "./github";
import { error, flag, input, InputError, mask, notice, output, quoted, summary, trigger, warning } from "./runner";

const reasons = ["failed", "not_understood", "needs_detail", "nothing_to_do", "timeout"] as const;
type Reason = (typeof reasons)[number];

interface Settings {
  server: string;
  key: string;
  project: string;
  prompt: string;
  branch: string;
  model: string;
  draft: boolean;
  dryRun: boolean;
  wait: number; // milliseconds; 0: not at all
  failOn: Set<Reason>;
  newJob: boolean;
  comment: boolean;
  token: string;
}

function settings(): Settings {
  for (const secret of ["key", "github-token"]) mask(input(secret)); // before anything can be printed
  const required = (name: string) => input(name) || fail(`${name}: is required`);
  const server = required("server").replace(/\/+$/, "");
  if (!URL.canParse(server) || !/^https?:$/.test(new URL(server).protocol)) fail(`server: ${JSON.stringify(server)} is not an address such as https://docent.example.com`);
  const rerun = input("rerun") || "reuse";
  if (rerun !== "reuse" && rerun !== "new") fail(`rerun: ${JSON.stringify(rerun)} must be reuse or new`);
  const s = {
    server, key: required("key"), project: required("project"), prompt: prompt(), branch: input("branch"), model: input("model"), draft: flag("draft"),
    dryRun: flag("dry-run"), wait: duration(input("wait") || "30m"), failOn: failOn(), newJob: rerun === "new", comment: flag("comment"), token: input("github-token"),
  };
  if (s.branch && s.dryRun) fail("branch: a dry run makes no branch");
  if (s.dryRun && s.wait === 0) fail("wait: a dry run has a diff only when it has ended");
  if (s.comment && !s.token) fail("github-token: is required for a comment");
  return s;
}

function fail(message: string): never {
  throw new InputError(message);
}

function prompt(): string {
  const file = input("prompt-file");
  if (input("prompt") && file) fail("prompt-file: give either prompt or prompt-file");
  if (!file) return input("prompt") || fail("prompt: is required, or prompt-file");
  try {
    return readFileSync(resolve(process.env["GITHUB_WORKSPACE"] ?? ".", file), "utf8").trim() || fail(`prompt-file: ${file} is empty`);
  } catch (e) {
    if (e instanceof InputError) throw e;
    return fail(`prompt-file: ${file} cannot be read; the workflow has to check the repository out first (actions/checkout)`);
  }
}

function duration(text: string): number {
  const parts = /^(\d+)\s*(s|m|h)?$/.exec(text);
  if (!parts) return fail(`wait: ${JSON.stringify(text)} must be a time such as 90s, 30m or 2h`);
  return Number(parts[1]) * { s: 1000, m: 60_000, h: 3_600_000 }[(parts[2] ?? "m") as "s" | "m" | "h"];
}

function failOn(): Set<Reason> {
  const list = input("fail-on").split(",").map((r) => r.trim()).filter(Boolean);
  for (const r of list) if (!(reasons as readonly string[]).includes(r)) fail(`fail-on: ${JSON.stringify(r)} is none of ${reasons.join(", ")}`);
  return new Set(list as Reason[]);
}

/** step names this use of the action: the workflow, its job, and which use in there. */
const step = () => ["GITHUB_REPOSITORY", "GITHUB_WORKFLOW", "GITHUB_JOB", "GITHUB_ACTION"].map((v) => process.env[v] ?? "").join("/");

/** once is the idempotency key of the run: the same over its attempts, unless a new job is wanted. */
function once(s: Settings): string {
  const attempt = s.newJob ? process.env["GITHUB_RUN_ATTEMPT"] ?? "1" : "";
  const instruction = JSON.stringify([step(), s.project, s.prompt, s.branch, s.model, s.draft, s.dryRun, attempt]);
  return `github-${process.env["GITHUB_RUN_ID"] ?? "0"}-${createHash("sha256").update(instruction).digest("hex").slice(0, 32)}`;
}

async function create(docent: Docent, s: Settings): Promise<string> {
  const model = s.model ? { model: s.model } : {};
  const idempotencyKey = once(s);
  if (!s.branch) return (await docent.createJob(s.project, { prompt: s.prompt, asDraft: s.draft, dryRun: s.dryRun, ...model }, { idempotencyKey })).id;
  // Only version 1 takes the name of a branch. Its answer is a stream of the run, which is left: the job goes on.
  const { response } = await docent.api.POST("/v1/agent/{projectId}/job", {
    params: { path: { projectId: s.project }, header: { "Idempotency-Key": idempotencyKey } }, parseAs: "stream",
    body: { messages: [{ role: "user", content: s.prompt }], branch: s.branch, asDraft: s.draft, ...model },
  });
  await response.body?.cancel();
  return response.headers.get("X-Session-Id") ?? fail("server: it answered without a job");
}

interface Ended {
  job: Job;
  diff: string;
  late: boolean;
}

/** follow prints the job's log until it has ended, or the time is up. */
async function follow(docent: Docent, s: Settings, id: string): Promise<Ended> {
  let diff = "";
  let ended: Job | undefined;
  const signal = AbortSignal.timeout(s.wait);
  await quoted(`Job ${id}`, async (line) => {
    try {
      const log = docent.jobEvents(s.project, id, { signal });
      for (let next = await log.next(); ; next = await log.next()) {
        if (next.done) {
          ended = next.value;
          return;
        }
        const e = next.value;
        if (e.diff !== undefined) diff = e.diff;
        const files = e.files?.map((f) => `${f.status} ${f.path} (+${f.added} -${f.removed})`) ?? [];
        line(`${e.at.slice(11, 19)}  ${e.type.padEnd(9)}  ${[e.title, e.text, ...files, e.branch, e.prLink].filter(Boolean).join("\n".padEnd(22))}`);
      }
    } catch (e) {
      if (!signal.aborted || e instanceof ApiError) throw e;
    }
  });
  return { job: ended ?? await docent.readJob(s.project, id), diff, late: !ended };
}

/** fenced is text of others as a block of code: nothing in it is Markdown, names anybody, or ends the block. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (m) => m[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

function headline({ job, late }: Ended, dryRun: boolean): string {
  if (late || job.status === "active") return "The job is still at work";
  if (job.status === "failed") return "The job has failed";
  switch (job.outcome) {
    case "changed": return dryRun ? "The documentation would be changed" : "The documentation was changed";
    case "nothing_to_do": return "There was nothing to change";
    case "not_understood": return "The instruction was not understood";
    case "needs_detail": return "The instruction needs more detail";
    default: return "The job has ended";
  }
}

/** report is how it went, for the run's summary and for the comment. */
function report(ended: Ended, s: Settings): string {
  const { job, diff } = ended;
  const link = job.prLink && /^https?:\/\/[^\s<>()"]+$/.test(job.prLink) ? `\n\n<${job.prLink}>` : "";
  const changes = s.dryRun && diff ? `\n\n<details><summary>Changes</summary>\n\n${fenced(diff.slice(0, 50_000), "diff")}\n\n</details>` : "";
  return `### Docent: ${headline(ended, s.dryRun)}${link}${job.message ? `\n\n${fenced(job.message.slice(0, 5000), "text")}` : ""}${changes}\n\nJob \`${job.id}\` of project \`${s.project.replaceAll("`", "")}\``;
}

function verdict({ job, late }: Ended): Reason | undefined {
  if (late) return "timeout";
  if (job.status === "failed") return "failed";
  return (reasons as readonly (string | null)[]).includes(job.outcome) ? (job.outcome as Reason) : undefined;
}

/** comment writes the step's comment. With a key nobody else can make its mark, so nobody else's comment is taken for it. */
async function comment(s: { key: string; token: string }, markdown: string): Promise<void> {
  const { number } = trigger();
  if (number === undefined) return warning("Docent", "comment: the workflow was started by no pull request or issue, so there is nothing to comment on");
  const name = createHmac("sha256", s.key || "check-docs").update(`${step()}#${number}`).digest("hex").slice(0, 32);
  await github(s.token).say(number, `docent:${name}`, markdown, !s.key).catch((e: Error) => warning("Docent", `The comment could not be written: ${e.message}`));
}

const github = (token: string) => new GitHub(process.env["GITHUB_API_URL"] ?? "https://api.github.com", process.env["GITHUB_REPOSITORY"] ?? "", token);

/** check is the mode without a server: it says which pages the pull request concerns. */
async function check(docs: string): Promise<boolean> {
  const token = input("github-token");
  mask(token);
  const { number } = trigger();
  if (number === undefined) return fail("check-docs: the workflow was started by no pull request");
  if (!token) return fail("github-token: is required to read the pull request's change");
  const level = input("check-fail-on") || "never";
  if (!["outdated", "related", "never"].includes(level)) return fail(`check-fail-on: ${JSON.stringify(level)} must be outdated, related or never`);
  const found = await checkDocs(input("binary") || "docent", docs, await github(token).diff(number), trigger().title ?? "", input("sarif"));
  process.stdout.write(found.annotations);
  output("pages", found.pages.join("\n"));
  summary(found.markdown);
  if (flag("comment")) await comment({ key: "", token }, found.markdown);
  const bad = level === "outdated" ? found.outdated : level === "related" ? found.pages.length : 0;
  if (bad) error("Docent", `${bad} pages of the documentation are concerned`);
  return bad === 0;
}

async function run(): Promise<boolean> {
  const docs = input("check-docs");
  if (docs) return check(docs);
  const s = settings();
  const { protocol, hostname } = new URL(s.server);
  if (protocol === "http:" && !/^(localhost|127\..*|\[::1\])$/.test(hostname)) warning("Docent", "server: the key goes over http, which others can read");
  const docent = new Docent({ server: s.server, key: s.key, headers: { "User-Agent": "docent-action" } });
  const id = await create(docent, s);
  output("job-id", id);
  if (s.wait === 0) {
    const job = await docent.readJob(s.project, id);
    output("status", job.status);
    notice("Docent", `Job ${id} is at work`);
    return true;
  }
  const ended = await follow(docent, s, id);
  const { job, diff } = ended;
  output("status", job.status);
  output("outcome", job.outcome ?? "");
  output("pr-link", job.prLink ?? "");
  output("summary", job.message);
  output("diff", s.dryRun ? diff : "");
  const markdown = report(ended, s);
  summary(markdown);
  if (s.comment) await comment(s, markdown);
  const why = verdict(ended);
  const text = ended.late ? `${headline(ended, s.dryRun)} after ${input("wait") || "30m"}; it goes on at the server (${id})` : `${headline(ended, s.dryRun)}: ${job.message}`;
  if (why && s.failOn.has(why)) {
    error("Docent", text);
    return false;
  }
  notice("Docent", job.prLink ? `${text}\n${job.prLink}` : text);
  return true;
}

run().then((well) => { process.exitCode = well ? 0 : 1; }, (e: unknown) => {
  const details = e instanceof ApiError ? e.details.map((d) => `\n${d.field}: ${d.message}`).join("") : "";
  error("Docent", e instanceof WaitTimeoutError || e instanceof Error ? e.message + details : String(e));
  process.exitCode = 1;
});
