// The official TypeScript client of the Model Context Protocol with an auth provider, against a real server: it has an address and
// nothing else. The script is also the person at the browser and the site that knows its readers. Prints what is wrong, a line each.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";

const set = JSON.parse(process.env.DOCENT_OAUTH);
const problems = [];
const expect = (what, ok, got) => ok || problems.push(`${what}: ${JSON.stringify(got)?.slice(0, 400)}`);
const text = (result) => result.content.map((c) => c.text).join("");
const plain = (html) => html.replace(/&#(\d+);/g, (_, n) => String.fromCharCode(n)).replace(/&#x([0-9a-f]+);/gi, (_, n) => String.fromCharCode(parseInt(n, 16))).replace(/&quot;/g, '"').replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
const found = (page, pattern) => { const m = page.match(pattern); if (!m) throw new Error(`no ${pattern} in\n${page}`); return plain(m[1]); };

/** A browser keeps cookies and sends forms. */
class Browser {
  cookies = new Map();
  async open(address, form) {
    const response = await fetch(new URL(address, set.url), { redirect: "manual", method: form ? "POST" : "GET", body: form && new URLSearchParams(form),
      headers: { accept: "text/html", cookie: [...this.cookies].map(([k, v]) => `${k}=${v}`).join("; ") } });
    for (const c of response.headers.getSetCookie()) { const [, k, v] = c.match(/^([^=]+)=([^;]*)/); this.cookies.set(k, v); }
    const page = await response.text();
    return response.status === 303 ? this.open(response.headers.get("location")) : { response, page };
  }
  async enter(link) {
    const { page } = await this.open(link);
    await this.open(link, { token: found(page, /name="token" value="([^"]+)"/) });
    return this;
  }
  async allow({ page }) {
    const { response } = await this.open("/oauth/authorize/decide", { token: found(page, /name="token" value="([^"]+)"/), request: found(page, /name="request" value="([^"]+)"/), decision: "allow" });
    return new URL(response.headers.get("refresh").replace("0; url=", ""));
  }
}

/** A provider is what an editor has: memory, and a way to open a browser. */
class Provider {
  redirectUrl = "http://localhost:33418/callback";
  clientMetadata = { client_name: "Conformance", redirect_uris: ["http://localhost/callback"], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none", application_type: "native" };
  state() { return "a state"; }
  clientInformation() { return this.client; }
  saveClientInformation(c) { this.client = c; }
  tokens() { return this.kept; }
  saveTokens(t) { this.kept = t; this.saved = (this.saved ?? 0) + 1; }
  redirectToAuthorization(url) { this.to = url; }
  saveCodeVerifier(v) { this.verifier = v; }
  codeVerifier() { return this.verifier; }
}

/** connect comes in as an editor does: refused, sent to the browser, and back with the code. */
async function connect(path, decide) {
  const provider = new Provider();
  const address = new URL(path, set.url);
  const first = new StreamableHTTPClientTransport(address, { authProvider: provider });
  const refused = await new Client({ name: "conformance", version: "1" }).connect(first).catch((e) => e);
  expect(`${path} sends to the browser`, refused instanceof UnauthorizedError && provider.to, String(refused));
  const back = await decide(provider.to);
  expect("the answer names its server", back.searchParams.get("iss") === set.url && back.searchParams.get("state") === "a state", back);
  await first.finishAuth(back.searchParams.get("code"));
  const client = new Client({ name: "conformance", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(address, { authProvider: provider }));
  return { client, provider, first, back };
}
const search = async (client) => text(await client.callTool({ name: "search", arguments: { query: "salary of grade nine" } }));
const readers = `/mcp/${set.domain}`, agent = `/mcp/agent/${set.project}`;

{ // a person of the console, for the tools of readers
  const browser = await new Browser().enter(set.viewer);
  const { client, provider, first, back } = await connect(readers, async (to) => browser.allow(await browser.open(to.href)));
  expect("a person finds what everybody may", (await search(client)).includes("once a month"), await search(client));
  expect("and nothing private", !(await search(client)).includes(set.private), await search(client));
  // a token that is not taken any more is refreshed by the client itself
  const before = provider.kept.refresh_token;
  provider.kept = { ...provider.kept, access_token: provider.kept.access_token.slice(0, -4) + "AAAA" };
  const again = new Client({ name: "conformance", version: "1" });
  await again.connect(new StreamableHTTPClientTransport(new URL(readers, set.url), { authProvider: provider }));
  expect("it goes on after a refresh", (await search(again)).includes("once a month"), provider.kept);
  expect("the refresh token is another one", provider.kept.refresh_token && provider.kept.refresh_token !== before, provider.saved);
  const replayed = await first.finishAuth(back.searchParams.get("code")).catch((e) => e);
  expect("a code works once", replayed instanceof Error, replayed);
}
{ // an editor, for the agent's tools
  const browser = await new Browser().enter(set.editor);
  const { client } = await connect(agent, async (to) => browser.allow(await browser.open(to.href)));
  const { tools } = await client.listTools();
  expect("the agent's tools", tools.some((t) => t.name === "create_job"), tools);
  expect("the jobs", !(await client.callTool({ name: "list_jobs", arguments: {} })).isError);
}
for (const [who, sees] of [["staff", true], ["guest", false]]) { // readers, whom the site knows
  const { client } = await connect(readers, async (to) => {
    const browser = new Browser();
    const { page } = await browser.open(to.href);
    const site = new URL(found(page, new RegExp(`href="(${set.signIn}[^"]+)"`)));
    return browser.allow(await browser.open("/oauth/reader", { request: site.searchParams.get("request"), token: set[who] }));
  });
  expect(`${who} and the private page`, (await search(client)).includes(set.private) === sees, await search(client));
}
{ // a machine with a key
  const client = new Client({ name: "conformance", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(readers, set.url), { authProvider: new ClientCredentialsProvider({ clientId: "ci", clientSecret: set.assistant }) }));
  expect("a machine reads", (await search(client)).includes("once a month"));
}
if (problems.length) console.log(problems.join("\n"));
process.exit(0);
