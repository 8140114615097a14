// The example pages in a real browser, opened from another origin than the server's.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { chromium } from "playwright-core";

const settings = JSON.parse(process.env.DOCENT_BROWSER);
const { harbour, slow, endless, foreign } = settings;

const browser = await chromium.launch({
  executablePath: settings.chromium,
  args: ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
after(() => browser.close());

const wholeAnswer = Array.from({ length: 100 }, (_, n) => `part-${n}`).join(" "); // of the slow model

/** A reader has one of the example pages open in a tab of its own. */
class Reader {
  constructor(path, answers, { domain, key }) {
    this.answers = answers;
    this.address = `${settings.pages}${path}?${new URLSearchParams({ server: settings.server, domain, key })}`;
    this.questions = []; // the bodies that were sent
    this.faults = [];
    this.failures = []; // requests that got no answer, with the browser's reason
  }

  async open() {
    this.context = await browser.newContext();
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(120_000);
    this.page.on("pageerror", (error) => this.faults.push(error));
    this.page.on("requestfailed", (request) => this.failures.push(`${request.method()} ${request.url()}: ${request.failure()?.errorText}`));
    this.page.on("request", (request) => request.method() === "POST" && this.questions.push(request.postDataJSON()));
    await this.page.goto(this.address);
  }

  answer(n) { return this.page.locator(this.answers).nth(n); }
  text(n) { return this.answer(n).locator(".text").innerText(); }
  count() { return this.page.locator(this.answers).count(); }
  button(name) { return this.page.getByRole("button", { name, exact: true }); }

  /** ask sends a question and returns the head of its answer. */
  async ask(question) {
    await this.ready();
    const answered = this.page.waitForResponse((response) => response.request().method() === "POST");
    await this.page.getByLabel("Question").fill(question);
    await this.button("Ask").click();
    return answered;
  }

  /** ready waits until the page takes a question. */
  ready() {
    return this.page.waitForFunction(() => [...document.querySelectorAll("form button")].some((b) => b.textContent === "Ask" && !b.disabled));
  }

  /** whole waits until there are that many answers and the last is complete: the text given, where one is. */
  async whole(count, text) {
    await this.answer(count - 1).waitFor();
    if (text) await this.page.waitForFunction(([answers, text]) => [...document.querySelectorAll(`${answers} .text`)].at(-1)?.innerText.trim() === text, [this.answers, text]);
    await this.ready();
    assert.equal(await this.count(), count);
    assert.equal(await this.problem(), "");
    return (await this.text(count - 1)).trim();
  }

  /** resume reloads the page, which reads the newest answer again, and returns once it has been read. */
  async resume() {
    const stream = this.page.waitForResponse((response) => response.request().method() === "GET" && response.url().endsWith("/stream"));
    await this.page.reload();
    const response = await stream;
    assert.equal(response.status(), 200);
    assert.equal(await response.finished(), null);
    // The page has all of it too, and is busy until it has shown it.
    await this.page.waitForFunction(() => performance.getEntriesByType("resource").some((e) => e.name.endsWith("/stream")));
  }

  /** partial waits until an answer has begun, and returns what is there of it. */
  async partial(n) {
    await this.answer(n).getByText("part-5 ").waitFor();
    return (await this.text(n)).trim();
  }

  async problem() { return (await this.page.locator(".error").allInnerTexts()).join(""); }

  /** refusal waits for an error and returns its text. */
  async refusal() {
    await this.page.locator(".error:not(:empty)").waitFor();
    return this.problem();
  }
}

/** story runs with one reader, and fails also where the page had an uncaught error. */
const story = (name, path, answers, project, run) => test(name, async () => {
  const reader = new Reader(path, answers, project);
  try {
    await reader.open();
    await run(reader);
    assert.deepEqual(reader.faults, []);
  } catch (error) {
    error.message += `\nthe page showed:\n${await reader.page?.locator("body").innerText()}\nrequests that failed:\n${reader.failures.join("\n")}`;
    throw error;
  } finally {
    await reader.context?.close();
  }
});

/** sentence is what the server itself says to a question with that key from that origin. */
async function sentence({ domain, key }, status) {
  const response = await fetch(`${settings.server}/discovery/v2/assistant/${domain}/message`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}`, Origin: settings.pages },
    body: JSON.stringify({ fp: "anonymous", messages: [{ role: "user", parts: [{ type: "text", text: "Hello?" }] }] }),
  });
  assert.equal(response.status, status);
  const { error } = await response.json();
  assert.ok(error.length > 10);
  return error;
}

/** hold has the next answer stay in its midst: its reader gets no more than the beginning until the page is left, or the server is killed. */
async function hold() {
  assert.equal((await fetch(settings.control + "/hold", { method: "POST" })).status, 200);
}

async function restart() {
  const response = await fetch(settings.control + "/restart", { method: "POST" });
  assert.equal(response.status, 200, await response.text());
}

const pages = [["React", "/react/", "article.assistant"], ["plain", "/plain/", "article"]].filter(([name]) => name === settings.page);
assert.equal(pages.length, 1, "settings.page names one of the pages");
for (const [name, path, answers] of pages) {
  const tell = (title, project, run) => story(title, path, answers, project, run);
  /** again reloads a page whose answer is complete: React's reads it again nevertheless. */
  const again = (reader) => name === "React" ? reader.resume() : reader.page.reload();

  describe(`the ${name} page`, () => {
    tell("a preflight goes before the question, and the answer has its sources", harbour, async (reader) => {
      const before = (await (await fetch(settings.control + "/requests")).json()).length;
      await reader.ask("When does the ferry leave?");
      assert.match(await reader.whole(1), /leaves every hour from pier two/);
      const links = reader.answer(0).locator(".sources a");
      assert.equal(await links.first().getAttribute("href"), "https://harbour.example.com/ferries");
      assert.match(await links.first().innerText(), /Ferries/);

      assert.equal(await reader.page.evaluate(() => location.origin), settings.pages);
      assert.notEqual(new URL(settings.pages).hostname, new URL(settings.server).hostname);
      const seen = (await (await fetch(settings.control + "/requests")).json()).slice(before);
      assert.deepEqual(seen.map((r) => r.method), ["OPTIONS", "POST"]);
      const [preflight, question] = seen;
      assert.equal(preflight.status, 204);
      assert.deepEqual(preflight.headers["Access-Control-Request-Method"], ["POST"]);
      assert.deepEqual(preflight.headers["Access-Control-Request-Headers"], ["authorization,content-type"]);
      assert.equal(preflight.headers.Authorization, undefined, "a preflight carries no key");
      assert.deepEqual(question.headers.Origin, [settings.pages]);
      assert.equal(question.status, 200);
    });

    tell("the answer appears piece by piece", endless, async (reader) => {
      await reader.page.evaluate((answers) => {
        window.lengths = new Set();
        new MutationObserver(() => {
          const text = document.querySelector(`${answers} .text`)?.textContent;
          if (text) window.lengths.add(text.length);
        }).observe(document.body, { childList: true, characterData: true, subtree: true });
      }, answers);
      await reader.ask("Tell me slowly about the ferry.");
      await reader.page.waitForFunction(() => window.lengths.size > 5); // the answer is far from its end
      assert.equal(await reader.problem(), "");
    });

    tell("a reload keeps the conversation and its thread", harbour, async (reader) => {
      const first = await reader.ask("When does the ferry leave?");
      const text = await reader.whole(1);
      const thread = first.headers()["x-thread-id"];
      assert.match(thread, /^thr_/);
      await again(reader);
      assert.equal(await reader.whole(1), text);
      assert.ok(await reader.answer(0).locator(".sources a").count() > 0, "the sources are still there");
      const second = await reader.ask("What do tickets cost?");
      assert.match(await reader.whole(2), /four coins/);
      assert.equal(await reader.text(0).then((t) => t.trim()), text);
      assert.deepEqual(reader.questions.map((q) => q.threadId), [null, thread]);
      assert.equal(second.headers()["x-thread-id"], thread);
    });

    tell("a reload in the middle of an answer reads it whole, once", slow, async (reader) => {
      await hold();
      await reader.ask("Tell me slowly about the ferry.");
      assert.notEqual(await reader.partial(0), wholeAnswer);
      await reader.resume();
      assert.equal(await reader.whole(1, wholeAnswer), wholeAnswer);
      assert.equal(reader.questions.length, 1, "the question was not sent again");
      await again(reader);
      assert.equal(await reader.whole(1, wholeAnswer), wholeAnswer);
    });

    tell("a reload in the middle of a second answer leaves the first alone", slow, async (reader) => {
      await reader.ask("Tell me slowly about the ferry.");
      await reader.whole(1);
      await hold();
      await reader.ask("And slowly about the lighthouse.");
      assert.notEqual(await reader.partial(1), wholeAnswer);
      await reader.resume();
      assert.equal(await reader.whole(2, wholeAnswer), wholeAnswer);
      assert.equal((await reader.text(0)).trim(), wholeAnswer);
    });

    tell("a reload after the server was killed in the middle of an answer reads it whole, once", slow, async (reader) => {
      await hold();
      await reader.ask("Tell me slowly about the ferry.");
      assert.notEqual(await reader.partial(0), wholeAnswer);
      await restart();
      assert.match(await reader.refusal(), /connection/);
      await reader.resume();
      assert.equal(await reader.whole(1, wholeAnswer), wholeAnswer);
      assert.equal(reader.questions.length, 1, "the question was not sent again");
    });

    const mistyped = { ...harbour, key: harbour.key.slice(0, -1) + (harbour.key.endsWith("0") ? "1" : "0") };
    tell("a wrong key shows the server's sentence", mistyped, async (reader) => {
      const response = await reader.ask("When does the ferry leave?");
      assert.equal(response.status(), 401);
      assert.equal(await reader.refusal(), await sentence(mistyped, 401));
    });

    tell("a key of another origin shows the server's sentence", foreign, async (reader) => {
      const response = await reader.ask("When does the ferry leave?");
      assert.equal(response.status(), 403);
      assert.equal(await reader.refusal(), await sentence(foreign, 403));
    });

    if (name !== "React") return;

    tell("stop, and then another question", slow, async (reader) => {
      await hold();
      const first = await reader.ask("Tell me slowly about the ferry.");
      await reader.partial(0);
      await reader.button("Stop").click();
      assert.notEqual(await reader.whole(1), wholeAnswer);
      await reader.ask("And slowly about the lighthouse.");
      assert.equal(await reader.whole(2, wholeAnswer), wholeAnswer);
      assert.equal(reader.questions[1].threadId, first.headers()["x-thread-id"]);
    });

    tell("regenerate replaces the answer in its thread", harbour, async (reader) => {
      const first = await reader.ask("When does the ferry leave?");
      await reader.whole(1);
      const answered = reader.page.waitForResponse((response) => response.request().method() === "POST");
      await reader.button("Regenerate").click();
      assert.equal((await answered).headers()["x-thread-id"], first.headers()["x-thread-id"]);
      assert.match(await reader.whole(1), /leaves every hour from pier two/);
      assert.deepEqual(reader.questions.map((q) => q.trigger), ["submit-message", "regenerate-message"]);
    });

    tell("a new chat starts a new thread", harbour, async (reader) => {
      await reader.ask("When does the ferry leave?");
      await reader.whole(1);
      await reader.button("New chat").click();
      await reader.ask("What do tickets cost?");
      await reader.whole(1);
      assert.deepEqual(reader.questions.map((q) => q.threadId), [null, null]);
      assert.notEqual(reader.questions[0].id, reader.questions[1].id);
    });
  });
}
