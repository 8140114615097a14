// Solves challenges with altcha's own library: in, two challenges as JSON; out, a solution of each, a line each. The first as altcha's
// clients of before version 3 do, the second as its element of version 3 does with a challenge of this form.
import { text } from "node:stream/consumers";
import { solveChallenge as solve3 } from "altcha-lib";
import { deriveKey } from "altcha-lib/algorithms/sha";
import { solveChallenge } from "altcha-lib/v1";

const [first, second] = JSON.parse(await text(process.stdin));
const say = ({ algorithm, challenge, salt, signature }, number) =>
  console.log(btoa(JSON.stringify({ algorithm, challenge, number, salt, signature, took: 1 })));

say(first, (await solveChallenge(first.challenge, first.salt, first.algorithm, first.maxnumber).promise).number);
const parameters = { algorithm: second.algorithm, cost: 1, data: {}, keyLength: 32, nonce: Buffer.from(second.salt).toString("hex"), keyPrefix: second.challenge, salt: "" };
say(second, (await solve3({ challenge: { parameters, signature: second.signature }, counterMode: "string", deriveKey })).counter);
