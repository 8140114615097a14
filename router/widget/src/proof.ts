// The solver of proofs of work: a file of its own, which is loaded where a project asks for one. It works on the page's own thread, in
// slices that no reader feels: the policies that the widget works under allow no worker from elsewhere.

/** A Challenge has altcha's names. */
export interface Challenge {
  algorithm: string;
  challenge: string;
  maxnumber: number;
  salt: string;
  signature: string;
}

const slice = 8; // milliseconds

const words = new Uint32Array(64);
const primes: number[] = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (root: number) => ((root % 1) * 2 ** 32) | 0;
const rounds = Int32Array.from(primes, (p) => fraction(Math.cbrt(p)));
const first = Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));

/** compress takes a block of 64 bytes, at an offset, into the state of SHA-256. */
function compress(state: Int32Array, bytes: DataView, at: number) {
  for (let i = 0; i < 16; i++) words[i] = bytes.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15]!, y = words[i - 2]!;
    words[i] = words[i - 16]! + words[i - 7]! + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const t = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (e & f ^ ~e & g) + rounds[i]! + words[i]! | 0;
    const u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ a & c ^ b & c) | 0;
    h = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
  }
  state[0]! += a; state[1]! += b; state[2]! += c; state[3]! += d; state[4]! += e; state[5]! += f; state[6]! += g; state[7]! += h;
}

/** solve finds the number and gives the solution as it is sent; empty where there is none. */
export async function solve(c: Challenge): Promise<string> {
  const salt = new TextEncoder().encode(c.salt);
  const whole = salt.length & ~63; // bytes of the salt that fill blocks: they are taken in once
  const begun = first.slice();
  const head = new DataView(salt.buffer);
  for (let at = 0; at < whole; at += 64) compress(begun, head, at);
  const rest = salt.subarray(whole);
  const wanted = Int32Array.from({ length: 8 }, (_, i) => parseInt(c.challenge.slice(8 * i, 8 * i + 8), 16));
  const state = new Int32Array(8);
  let until = performance.now() + slice;
  for (let n = 0; n <= c.maxnumber; n++) {
    const digits = String(n);
    const length = rest.length + digits.length;
    const tail = new DataView(new ArrayBuffer(length < 56 ? 64 : 128));
    for (let i = 0; i < rest.length; i++) tail.setUint8(i, rest[i]!);
    for (let i = 0; i < digits.length; i++) tail.setUint8(rest.length + i, digits.charCodeAt(i));
    tail.setUint8(length, 128);
    tail.setUint32(tail.byteLength - 4, 8 * (whole + length));
    state.set(begun);
    for (let at = 0; at < tail.byteLength; at += 64) compress(state, tail, at);
    if (state[0] === wanted[0] && state.every((word, i) => word === wanted[i])) {
      return btoa(JSON.stringify({ algorithm: c.algorithm, challenge: c.challenge, number: n, salt: c.salt, signature: c.signature }));
    }
    if (n % 64 === 63 && performance.now() > until) {
      await new Promise((go) => setTimeout(go));
      until = performance.now() + slice;
    }
  }
  return "";
}
