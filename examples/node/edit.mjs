// Gives the agent an instruction, shows its work, and ends as the job did.
//   DOCENT_KEY=dct_adm_… node edit.mjs docs 'rename "Alertmanager" to "Alert Manager" everywhere'
import { Docent } from "docent-client";

const [project, prompt] = process.argv.slice(2);
if (!project || !prompt) {
  console.error('usage: node edit.mjs PROJECT "INSTRUCTION"');
  process.exit(2);
}
const docent = new Docent({ server: process.env.DOCENT_URL ?? "http://127.0.0.1:8080", key: process.env.DOCENT_KEY });

const { id } = await docent.createJob(project, { prompt });
const log = docent.jobEvents(project, id);
let next;
while (!(next = await log.next()).done) console.log(`${next.value.type}  ${next.value.text ?? next.value.title ?? ""}`);

const job = next.value;
console.log(`${job.status}  ${job.message}  ${job.prLink ?? ""}`);
process.exit(job.outcome === "changed" || job.outcome === "nothing_to_do" ? 0 : 1);
