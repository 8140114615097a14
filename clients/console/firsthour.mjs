// The first hour with a server: from the link that it prints to an answer that a merged pull request has changed. Everything is
// found as people find it, by roles and labels.
import assert from "node:assert/strict";
import { axe, end, person, settings, step } from "./harness.mjs";

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
  await button("Enter").click();
  await heading("Set up a project").waitFor();
  const other = await person("somebody who has seen the link too");
  const late = await other.newPage();
  late.expected = [404, 410];
  await late.goto(settings.enter);
  assert.equal(await button("Enter", late).count(), 0, "a link that was used lets nobody in");
  await other.close();
});

await step("a project from a git URL is looked at, read and indexed, live", page, async () => {
  await page.getByLabel("Where is your documentation?").fill(settings.repository);
  await button("Look at it").click();
  await heading(/what was found/).waitFor();
  await axe(page, "the wizard");
  await page.getByLabel("Domain").fill(domain);
  await page.getByLabel("Address of the site").fill(`https://${domain}`);
  await button("Read and index it").click();
  await heading(/is read$/).waitFor();
  await page.getByText("Pages", { exact: true }).waitFor();
  await link("Ask the first question").click();
});

await step("the first question is answered, with its sources", page, async () => {
  await page.getByLabel("Question").fill("When does the ferry leave?");
  await button("Ask").click();
  await page.getByText(/leaves every hour from pier two/).first().waitFor();
  await page.getByRole("heading", { name: "Sources" }).waitFor();
  await link("Next: the keys").click();
});

await step("both keys are made, shown once, and copied", page, async () => {
  await button("Make both keys").click();
  await page.getByText("Copy both keys now.").waitFor();
  for (const [name, prefix] of [["assistant", "dct_pub_"], ["admin", "dct_adm_"]]) {
    const shown = page.locator("code", { hasText: new RegExp(`^${prefix}\\w+$`) });
    keys[name] = (await shown.innerText()).trim();
    await shown.locator("xpath=ancestor::*[.//button][1]").getByRole("button", { name: "Copy" }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), keys[name]);
  }
  await page.reload();
  assert.equal(await page.getByText(keys.admin).count(), 0, "the key is shown a second time");
  await link(`To the overview of ${domain}`).click();
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
  await reader.getByLabel("Question").fill(question);
  await reader.getByRole("button", { name: "Ask", exact: true }).click();
  await reader.locator("article.assistant").last().getByText(answer).waitFor();
};
await step("a reader asks by useChat, with the key, from another site", reader, async () => {
  await ask("What do tickets cost?", /four coins/);
});

await step("another key is made, works, and is refused when it is revoked", page, async () => {
  await go("API keys");
  await page.getByLabel("Name", { exact: true }).fill("a trial");
  await button("Make the key").click();
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
