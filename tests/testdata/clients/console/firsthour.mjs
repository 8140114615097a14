// The first hour with a server: from the link that it prints to an answer that a merged pull request has changed. Everything is
// found as people find it, by roles and labels.
import assert from "node:assert/strict";
import { axe, end, person, sent, settings, step, until } from "./harness.mjs";

const operator = await person("the operator");
await operator.grantPermissions(["clipboard-read", "clipboard-write"]);
const page = await operator.newPage();
const button = (name, on = page) => on.getByRole("button", { name, exact: true });
const link = (name, on = page) => on.getByRole("link", { name, exact: true });
const heading = (name, on = page) => on.getByRole("heading", { level: 1, name });
const go = (name) => page.getByRole("navigation", { name: "Console" }).getByRole("link", { name, exact: true }).click();
const domain = "docs.harbour.example";
const keys = {};

await step("the printed link leads to the wizard, once", page, async () => {
  await page.goto(settings.enter);
  await button("Continue").click();
  await heading("Set up a project").waitFor();
  const other = await person("somebody who has seen the link too");
  const late = await other.newPage();
  late.expected = [404, 410];
  await late.goto(settings.enter);
  assert.equal(await button("Continue", late).count(), 0, "a link that was used lets nobody in");
  await other.close();
});

await step("a project from a git URL is looked at, read and indexed, live", page, async () => {
  await page.getByLabel("Where is your documentation?").fill(settings.repository);
  await button("Continue").click();
  await heading(/^Review/).waitFor();
  await axe(page, "the wizard");
  await page.getByLabel("Domain").fill(domain);
  await page.getByLabel("Public URL").fill(`https://${domain}`);
  await button("Index docs").click();
  await heading(/is indexed$/).waitFor();
  await page.getByText("Pages", { exact: true }).waitFor();
  await link("Ask the first question").click();
});

await step("the first question is answered, with its sources", page, async () => {
  await page.getByLabel("Question").fill("When does the ferry leave?");
  await button("Ask").click();
  await page.getByText(/leaves every hour from pier two/).first().waitFor();
  await page.getByRole("heading", { name: "Sources" }).waitFor();
  await link("Continue").click();
});

await step("a model is offered, and connected later", page, async () => {
  await heading("Connect a model (optional)").waitFor();
  await axe(page, "the offer of a model");
  await link("Skip").click();
});

await step("both keys are made, shown once, and copied", page, async () => {
  await button("Create both keys").click();
  await page.getByText("Copy both keys now.").waitFor();
  for (const [name, prefix] of [["assistant", "dct_pub_"], ["admin", "dct_adm_"]]) {
    const shown = page.locator("code", { hasText: new RegExp(`^${prefix}\\w+$`) });
    keys[name] = (await shown.innerText()).trim();
    await shown.locator("xpath=ancestor::*[.//button][1]").getByRole("button", { name: "Copy" }).click();
    await until("the key is copied", async () => await page.evaluate(() => navigator.clipboard.readText()) === keys[name]);
  }
  await page.reload();
  assert.equal(await page.getByText(keys.admin).count(), 0, "the key is shown a second time");
  await link("Open dashboard").click();
  await heading(domain).waitFor();
});

await step("a question in the playground, and why the answer is what it is", page, async () => {
  await go("Playground");
  await page.getByLabel("Question or words to search for").fill("What do tickets cost?");
  await button("Ask").click();
  await page.getByText(/four coins/).first().waitFor();
  await page.getByRole("heading", { name: /^Passages retrieved/ }).waitFor();
});

let reader; // of another site, with the key in its page
{
  const context = await person("a reader");
  reader = await context.newPage();
  await reader.goto(`${settings.chat}/react/?${new URLSearchParams({ server: settings.server, domain, key: keys.assistant })}`);
}
const ask = async (question, answer) => {
  if (await reader.getByRole("button", { name: "New chat" }).isEnabled()) await reader.getByRole("button", { name: "New chat" }).click();
  await reader.getByLabel("Question").fill(question);
  await reader.getByRole("button", { name: "Ask", exact: true }).click();
  await reader.locator("article.assistant").last().waitFor();
  await reader.getByRole("button", { name: "Regenerate" }).waitFor(); // the answer is complete
  return reader.locator("article.assistant").last().innerText();
};
await step("a reader asks by useChat, with the key, from another site", reader, async () => {
  assert.match(await ask("What do tickets cost?"), /four coins/);
});

/** watched marks a page, and unturned checks that it has not been loaded anew since: what has come, came live. */
const watched = (tab) => tab.evaluate(() => { globalThis.watched = true; });
const unturned = async (tab) => assert.ok(await tab.evaluate(() => globalThis.watched), "the page was loaded anew");

const unanswered = "May I bring my dog on the ferry?";
await step("conversations appear live on an open page", page, async () => {
  await go("Conversations");
  await link("What do tickets cost?").first().waitFor();
  await watched(page);
  assert.doesNotMatch(await ask(unanswered), /leash/);
  await link(unanswered).waitFor();
  await unturned(page);
  await page.getByRole("row", { name: unanswered }).getByText("in doubt").waitFor();
  await link(unanswered).click();
  await page.getByRole("heading", { level: 2, name: unanswered }).waitFor();
});

let job; // the address of the first one
await step("what was not answered is a gap, and becomes a job", page, async () => {
  await go("Gaps");
  await link(unanswered).click();
  const instruction = page.getByLabel("Instruction");
  await instruction.fill('add a section "Dogs" to ferries.md with content: You may bring your dog on the ferry: dogs travel free of charge.');
  await button("Create job").click();
  await page.getByRole("link", { name: /^job_/ }).first().click();
  await page.getByText("Edit made.").waitFor();
  await page.getByRole("link", { name: "Pull request", exact: true }).waitFor();
  job = page.url();
});

await step("the steps of a job by a language model are seen while it works", page, async () => {
  await go("Jobs");
  await link("New job").click();
  await page.getByLabel("Instructions").fill("Say that the lighthouse is white.");
  await page.getByLabel("Model").selectOption("writer");
  await button("Create job").click();
  await page.getByText("read_file").waitFor(); // the model waits before the next step
  await watched(page);
  assert.equal(await page.getByText("edit_file").count(), 0);
  await release("edit");
  await page.getByText("edit_file").waitFor();
  await page.getByText(/is white and stands/).first().waitFor(); // the diff as it grows
  assert.equal(await page.getByText("Edit made.").count(), 0);
  await page.getByText("read_file").click(); // what it was given comes when it is opened
  await page.getByText("Input", { exact: true }).first().waitFor();
  await axe(page, "a job at work");
  await release("finish");
  await page.getByText("Edit made.").waitFor();
  await unturned(page);
  const pull = page.getByRole("link", { name: "Pull request", exact: true });
  await pull.click();
  page.once("dialog", (dialog) => dialog.accept());
  await button("Close").click();
  await page.getByText("closed", { exact: true }).first().waitFor();
});
async function release(word) {
  await fetch(`${settings.model}/held/${word}`); // returns when the model waits for it
  assert.equal((await fetch(`${settings.model}/release/${word}`, { method: "POST" })).status, 200);
}

const jobTab = await operator.newPage();
await step("the diff is reviewed, and a comment on a line becomes a follow-up, live", page, async () => {
  await jobTab.goto(job);
  await watched(jobTab);
  await page.goto(job);
  await page.getByRole("link", { name: "Pull request", exact: true }).click();
  const line = page.getByRole("row").filter({ hasText: "dogs travel free of charge" });
  await line.waitFor();
  await axe(page, "the pull request");
  await line.getByRole("link").click();
  await page.getByLabel("Comment on this line").fill('replace "free of charge" with "free of charge, on a leash"');
  await button("Add comment").click();
  await button("Send to the job").click();
  await jobTab.getByText("Edit made.").nth(1).waitFor();
  await unturned(jobTab);
});

await step("the pull request is merged", page, async () => {
  await page.goto(job);
  await page.getByRole("link", { name: "Pull request", exact: true }).click();
  await page.getByText("dogs travel free of charge, on a leash").first().waitFor();
  await button("Merge").click();
  await page.getByText("merged", { exact: true }).first().waitFor();
});

await step("the answer has changed, and the gap is closed", reader, async () => {
  let answer = "";
  for (let i = 0; i < 60 && !/leash/.test(answer); i++) { // until the merged page is indexed
    if (i > 0) await new Promise((resolve) => setTimeout(resolve, 500));
    answer = await ask(unanswered);
  }
  assert.match(answer, /on a leash/);
  await page.goto(`${settings.server}/console/default/${domain}/gaps`);
  await page.getByRole("link", { name: /^Merged/ }).click();
  await link(unanswered).click();
  await page.getByRole("heading", { name: "Since the merge" }).waitFor();
});

const guest = await person("a viewer");
const guestPage = await guest.newPage();
const password = "a pier in the fog";
await step("somebody who is invited as a viewer reads, and can do nothing else", guestPage, async () => {
  await page.goto(`${settings.server}/console/default/people`);
  await button("Create invite link").click();
  const invitation = (await page.locator("code", { hasText: "/invite/" }).innerText()).trim();
  await guestPage.goto(invitation);
  await guestPage.getByLabel("Your name").fill("Vera");
  await guestPage.getByLabel("Email address").fill("vera@example.com");
  await guestPage.getByLabel("Password", { exact: true }).fill(password);
  await button("Join", guestPage).click();
  await guestPage.waitForURL("**/console/**");
  await guestPage.goto(job);
  await guestPage.getByText("Edit made.").first().waitFor();
  assert.equal(await guestPage.getByRole("button", { name: /^(Send|Cancel|Archive|Create pull request)$/ }).count(), 0);
  const token = await guestPage.locator("input[name=token]").first().inputValue(); // of the form to sign out
  for (const [path, form] of [[`${new URL(job).pathname}/message`, { prompt: "undo that" }], [`${new URL(job).pathname}/archive`, {}],
    [`/console/default/${domain}/keys/create`, { kind: "admin", name: "mine" }], [`/console/default/${domain}/settings/change`, { name: "mine" }]]) {
    const response = await guest.request.post(settings.server + path, { form: { token, ...form }, headers: { accept: "text/html" }, maxRedirects: 0 });
    assert.equal(response.status(), 403, `${path}: ${await response.text()}`);
  }
  guestPage.expected = [403, 404];
  for (const path of [`/console/default/${domain}/jobs/new`, "/console/default/audit", "/console/system", "/console/setup"]) {
    const response = await guestPage.goto(settings.server + path);
    assert.ok([403, 404].includes(response.status()), `${path} answers ${response.status()}`);
  }
});

await step("a session that is ended is out at once", guestPage, async () => {
  const elsewhere = await person("the viewer on another machine");
  const other = await elsewhere.newPage();
  await other.goto(`${settings.server}/login`);
  await other.getByLabel("Email address").fill("vera@example.com");
  await other.getByLabel("Password", { exact: true }).fill(password);
  await button("Sign in", other).click();
  await other.waitForURL("**/console/**");
  await guestPage.goto(`${settings.server}/console/account`);
  await sent(guestPage, guestPage.getByRole("button", { name: /^End the session of/ }));
  await other.getByRole("navigation", { name: "Console" }).getByRole("link", { name: "Jobs" }).click();
  await other.waitForURL("**/login**");
  await heading("Sign in", other).waitFor();
});

await step("another key is made, works, and is refused when it is revoked", page, async () => {
  await page.goto(`${settings.server}/console/default/${domain}`);
  await go("API keys");
  await page.getByLabel("Name", { exact: true }).fill("a trial");
  await button("Create key").click();
  const secret = (await page.locator("code", { hasText: /^dct_pub_\w+$/ }).innerText()).trim();
  const search = () => fetch(`${settings.server}/discovery/v1/search/${domain}`, {
    method: "POST", headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, body: JSON.stringify({ query: "ferry" }),
  }).then((response) => response.status);
  assert.equal(await search(), 200);
  const row = page.getByRole("row", { name: /a trial/ });
  await row.getByText("Revoke", { exact: true }).click();
  await row.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByRole("row", { name: /a trial/ }).waitFor({ state: "hidden" });
  assert.equal(await search(), 401);
});

await end();
