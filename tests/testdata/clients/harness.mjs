// A page with one hook in it, and what the scenarios need around it.
import assert from "node:assert/strict";
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><div id=root></div>", { url: "http://localhost/" });
globalThis.window = dom.window;
globalThis.document = dom.window.document;
if (!globalThis.navigator) globalThis.navigator = dom.window.navigator; // Node.js has one of its own from version 21 on
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const React = (await import("react")).default;
const { createRoot } = await import("react-dom/client");
const { SWRConfig } = await import("swr");

export const { url, otherUrl, domain, key, slowDomain, slowKey, endlessDomain, endlessKey, lockedDomain, lockedKey, control, behindProxy } = JSON.parse(process.env.DOCENT_CLIENTS);

/** mount opens a page whose only content is the hook, and gives access to what the hook last returned. A page shares no
 * memory with another: SDK 4 keeps its messages in a cache that would otherwise outlive a reload. */
export function mount(hook) {
  const node = document.createElement("div");
  const root = createRoot(node);
  const page = { current: undefined, renders: [], unmount: () => root.unmount() };
  function Page() {
    page.current = hook();
    page.renders.push(page.current);
    return null;
  }
  root.render(React.createElement(SWRConfig, { value: { provider: () => new Map() } }, React.createElement(Page)));
  return page;
}

/** until waits for a condition on what is rendered. */
export async function until(what, condition, seconds = 120) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** restart kills the server with SIGKILL and starts it again. */
export async function restart() {
  const response = await fetch(control + "/restart", { method: "POST" });
  assert.equal(response.status, 200, await response.text());
}

/** reloadProxy has the proxy before the server take a changed configuration, and waits until it has. */
export async function reloadProxy() {
  const response = await fetch(control + "/reload", { method: "POST" });
  assert.equal(response.status, 200, await response.text());
}

/** conversation is what the server holds of a thread: the texts of its messages, in order. */
export async function conversation(domain, thread) {
  const response = await fetch(`${control}/threads/${domain.split(".")[0]}/${thread}`);
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body.messages.map((m) => m.content);
}

let failed = 0;
let passed = 0;

/** scenario runs one story and counts it. */
export async function scenario(name, story) {
  try {
    await story();
    passed++;
    console.log(`ok   ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}

export function end() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed > 0 || passed === 0 ? 1 : 0);
}
