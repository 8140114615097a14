// What an action says to the runner: commands on its standard output, and files that it names. The runner's own library brings 400 KB of an
// HTTP client with it, which this has no use for.
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";

export function input(name: string): string {
  return (process.env[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`] ?? "").trim();
}

export function flag(name: string): boolean {
  const text = input(name).toLowerCase();
  if (!["", "true", "false"].includes(text)) throw new InputError(`${name}: ${JSON.stringify(text)} must be true or false`);
  return text === "true";
}

/** An InputError is a mistake in the workflow. */
export class InputError extends Error {}

const escaped = (text: string) => text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");

function command(name: string, text: string, properties: Record<string, string> = {}) {
  const list = Object.entries(properties).map(([k, v]) => `${k}=${escaped(v).replaceAll(":", "%3A").replaceAll(",", "%2C")}`).join(",");
  process.stdout.write(`::${name}${list && " " + list}::${escaped(text)}\n`);
}

export const mask = (secret: string) => { if (secret) command("add-mask", secret); };
export const notice = (title: string, text: string) => command("notice", text, { title });
export const warning = (title: string, text: string) => command("warning", text, { title });
export const error = (title: string, text: string) => command("error", text, { title });

/** quoted prints what others wrote: a line in it that looks like a command is none. */
export function quoted(title: string, print: (line: (text: string) => void) => Promise<void>): Promise<void> {
  const token = randomUUID();
  process.stdout.write(`::group::${escaped(title)}\n::stop-commands::${token}\n`);
  return print((text) => process.stdout.write(text.replaceAll("\r", "") + "\n")).finally(() => process.stdout.write(`::${token}::\n::endgroup::\n`));
}

export function output(name: string, value: string) {
  const end = `end-${randomUUID()}`; // which no value can have foreseen
  append("GITHUB_OUTPUT", `${name}<<${end}\n${value}\n${end}\n`);
}

export const summary = (markdown: string) => append("GITHUB_STEP_SUMMARY", markdown + "\n");

function append(variable: string, text: string) {
  const file = process.env[variable];
  if (file) appendFileSync(file, text);
}

export interface Trigger {
  /** Number of the pull request or issue; undefined where the workflow was started by something else. */
  number: number | undefined;
  title?: string;
}

export function trigger(): Trigger {
  const file = process.env["GITHUB_EVENT_PATH"];
  const event = file ? JSON.parse(readFileSync(file, "utf8")) : {};
  return { number: event.pull_request?.number ?? event.issue?.number, title: event.pull_request?.title };
}
