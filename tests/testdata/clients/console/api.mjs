// The page of the API as developers use it: read in light, in dark, on a phone and without JavaScript, and requests tried on it with a
// pasted key, whose real answers are shown, bit by bit where they come so. Prints what is wrong, a line each.
import assert from "node:assert/strict";
import { axe, end, fits, person, settings, step } from "./harness.mjs";

const { server, domain, project, slowDomain, endlessDomain } = settings;
const operation = (page, id) => page.locator(`details#${id}`);
const open = async (page, id) => {
  await page.goto(`${server}/api#${id}`);
  await operation(page, id).locator("form").waitFor();
  return operation(page, id);
};

for (const [scheme, viewport] of [["light", { width: 1280, height: 844 }], ["dark", { width: 390, height: 844 }]]) {
  const context = await person(`in ${scheme}`, { colorScheme: scheme, viewport });
  const page = await context.newPage();
  await step(`the page is read in ${scheme} at ${viewport.width} px`, page, async () => {
    await page.goto(`${server}/api`);
    await axe(page, `the page in ${scheme}`);
    await fits(page, `the page in ${scheme}`);
    await page.getByRole("button", { name: "Open all" }).click();
    await page.evaluate(() => { for (const fold of document.querySelectorAll("details.operation details")) fold.open = true; });
    await fits(page, `the page in ${scheme}, all of it`);
    await page.getByLabel("Find an operation").fill("job"); // every kind of part is in these
    await axe(page, `the page in ${scheme}, opened`);
  });
  if (settings.pictures) {
    await open(page, "askV2");
    await page.screenshot({ path: `${settings.pictures}/${scheme}.png` });
  }
  await context.close();
}

const context = await person("a developer");
const page = await context.newPage();
const key = (name) => page.getByLabel(`${name} key`, { exact: true });

await step("an operation is found, and a link to a type opens it", page, async () => {
  await page.goto(`${server}/api`);
  await page.getByLabel("Find an operation").fill("search documentation");
  assert.equal(await page.locator("details.operation:visible").count(), 1);
  await page.getByLabel("Find an operation").fill("");
  await page.locator("details#createJob > summary").click();
  await operation(page, "createJob").getByRole("link", { name: "CreateJob", exact: true }).click();
  await operation(page, "schema-CreateJob").getByText("asDraft").waitFor();
});

await step("a request without a key shows the real refusal", page, async () => {
  page.expected = [401];
  const search = await open(page, "search");
  await search.getByLabel("domain", { exact: true }).fill(domain);
  await search.getByRole("button", { name: "Send" }).click();
  await search.getByRole("status").filter({ hasText: /^401/ }).waitFor();
  assert.match(await search.getByLabel("Body of the answer").innerText(), /"code": "unauthorized"/);
});

await step("with the key it is answered, and the key is nowhere but in its field", page, async () => {
  await key("assistant").fill(settings.assistant);
  const search = await open(page, "search");
  await search.getByLabel("domain", { exact: true }).fill(domain);
  await search.getByLabel("Body", { exact: true }).fill('{"query": "moor a boat", "pageSize": 3}');
  await search.getByRole("button", { name: "Send" }).click();
  await search.getByRole("status").filter({ hasText: /^200/ }).waitFor();
  const hits = JSON.parse(await search.getByLabel("Body of the answer").innerText());
  assert.match(hits[0].path, /mooring/);
  const command = await search.getByLabel("Search the documentation, as a command").innerText();
  assert.match(command, new RegExp(`${domain}[^]*ASSISTANT_KEY[^]*moor a boat`));
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML, location.href]));
  assert.ok(!kept.includes(settings.assistant), "the key is kept, or written on the page");
  await axe(page, "a request that was tried");
});

await step("an answer is shown as it comes, and can be stopped", page, async () => {
  const ask = await open(page, "askV2");
  await key("assistant").fill(settings.endlessAssistant); // its answer is far from its end whenever it is looked at
  await ask.getByLabel("domain", { exact: true }).fill(endlessDomain);
  const text = ask.getByLabel("The answer so far");
  await ask.getByRole("button", { name: "Send" }).click();
  await text.waitFor();
  const early = (await text.textContent()).length;
  assert.match(await ask.getByRole("status").innerText(), /receiving/);
  await page.waitForFunction(([id, n]) => document.querySelector(`#${id} [data-api-text]`).textContent.length > n, ["askV2", early]);
  assert.match(await ask.getByRole("status").innerText(), /receiving/);
  await ask.getByRole("button", { name: "Stop" }).click();
  await ask.getByRole("status").filter({ hasText: "stopped" }).waitFor();
  assert.doesNotMatch(await ask.getByLabel("Body of the answer").innerText(), /\[DONE\]/);
  await key("assistant").fill(settings.slowAssistant);
  await ask.getByLabel("domain", { exact: true }).fill(slowDomain);
  await ask.getByRole("button", { name: "Send" }).click();
  await text.filter({ hasText: /\S/ }).waitFor();
  await ask.getByRole("status").filter({ hasText: /^200.* s$/ }).waitFor();
  assert.match(await ask.getByLabel("Body of the answer").innerText(), /"type":"start"[^]*"type":"finish"[^]*\[DONE\]/);
});

await step("the older stream is shown as text too", page, async () => {
  const ask = await open(page, "askV1");
  await key("assistant").fill(settings.assistant);
  await ask.getByLabel("domain", { exact: true }).fill(domain);
  await ask.getByLabel("Body", { exact: true }).fill('{"fp": "anonymous", "messages": [{"role": "user", "content": "How do I moor a boat?"}]}');
  await ask.getByRole("button", { name: "Send" }).click();
  await ask.getByRole("status").filter({ hasText: /^200.* s$/ }).waitFor();
  assert.match(await ask.getByLabel("The answer so far").innerText(), /harbour moor/);
});

await step("a job is created, and its events followed to their end", page, async () => {
  await key("admin").fill(settings.admin);
  const create = await open(page, "createJob");
  await create.getByLabel("projectId", { exact: true }).fill(project);
  await create.getByRole("combobox", { name: "Example" }).selectOption({ label: "Add a page, as a draft" });
  await create.getByRole("button", { name: "Send" }).click();
  await create.getByRole("status").filter({ hasText: /^201/ }).waitFor();
  const { id } = JSON.parse(await create.getByLabel("Body of the answer").innerText());
  const events = await open(page, "jobEvents");
  await events.getByLabel("projectId", { exact: true }).fill(project);
  await events.getByLabel("id", { exact: true }).fill(id);
  await events.getByRole("button", { name: "Send" }).click();
  await events.getByRole("status").filter({ hasText: /^200.* s$/ }).waitFor();
  assert.match(await events.getByLabel("Body of the answer").innerText(), /event: end\ndata: .*"status":"completed"/);
});
await context.close();

{
  const context = await person("without JavaScript", { javaScriptEnabled: false });
  const page = await context.newPage();
  await step("it reads without JavaScript", page, async () => {
    await page.goto(`${server}/api`);
    await page.locator("details#createJob > summary").click();
    await page.getByLabel("Create a job, as a command").waitFor();
    assert.equal(await page.getByRole("button", { name: "Send" }).count(), 0);
  });
  await context.close();
}
await end();
