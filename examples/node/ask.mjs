// Asks a question and prints the answer as it is written, with its sources.
//   DOCENT_KEY=dct_pub_… node ask.mjs docs.example.com "How do I rotate a key?"
import { Docent, RateLimitError } from "docent-client";

const [domain, question] = process.argv.slice(2);
if (!domain || !question) {
  console.error('usage: node ask.mjs DOMAIN "QUESTION"');
  process.exit(2);
}
const docent = new Docent({ server: process.env.DOCENT_URL ?? "http://127.0.0.1:8080", key: process.env.DOCENT_KEY });

try {
  for await (const part of docent.ask(domain, question)) {
    if (part.type === "text") process.stdout.write(part.text);
    if (part.type === "restart") process.stdout.write("\n\nThe server was restarted, and answers again:\n\n");
    if (part.type === "finish") {
      const { sources, threadId } = part.answer;
      console.log(`\n\n${sources.map((s) => `- ${s.title}: ${s.url}`).join("\n")}\n\nthread ${threadId}`);
    }
  }
} catch (error) {
  console.error(error instanceof RateLimitError ? `Too many questions: try again in ${error.retryAfter} seconds.` : `${error}`);
  process.exit(1);
}
