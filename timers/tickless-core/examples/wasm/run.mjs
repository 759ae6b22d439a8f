// Loads the example, drives it by node's own clock and timeouts, and checks what fires when.
import { readFile } from "node:fs/promises";
import assert from "node:assert/strict";

const [, , path] = process.argv;
const begun = performance.now();
const now = () => performance.now() - begun;
const firedAt = new Map();
let again = 0n;

const imports = {
  env: {
    fired(number) {
      assert(!firedAt.has(number) || number === 0, `timer ${number} fired twice`);
      firedAt.set(number, now());
      // In the call timers may be used: the heart beat goes on five times.
      if (number === 0 && beats++ < 4) assert(timers.start(again, 10));
    },
  },
};
let beats = 0;
const { instance } = await WebAssembly.instantiate(await readFile(path), imports);
const timers = instance.exports;

// A start counts from the last time that the timers were told.
let told = 0;
const advance = () => {
  told = now();
  timers.advance(told);
};

advance();
again = timers.insert(0);
assert(timers.start(again, 10));

// A thousand idle timeouts. Every other connection goes on talking, and a third is closed.
const keys = Array.from({ length: 1000 }, (_, number) => timers.insert(number + 1));
const deadline = new Map();
keys.forEach((key, number) => {
  assert(key !== 0n && timers.start(key, 300));
  deadline.set(number + 1, told + 300);
});
for (let number = 0; number < 1000; number += 2) {
  advance();
  assert(timers.start(keys[number], 600), "pushed out");
  deadline.set(number + 1, told + 600);
}
for (let number = 0; number < 1000; number += 3) {
  assert(timers.cancel(keys[number]), "was pending");
  assert(!timers.cancel(keys[number]), "once");
  deadline.delete(number + 1);
}
assert(!timers.start(12345n, 1), "a key of no timer");

// One timeout of node's for whatever comes first.
await new Promise((resolve) => {
  const turn = () => {
    advance();
    const next = timers.next_event();
    if (next === Infinity) return resolve();
    setTimeout(turn, Math.max(0, Math.ceil(next - now())));
  };
  turn();
});

assert.equal(beats, 5);
assert.equal(firedAt.size, deadline.size + 1);
for (const [number, at] of deadline) {
  // Times are told in whole nanoseconds.
  assert(firedAt.get(number) >= at - 1e-5, `timer ${number} was early`);
}
console.log(`${deadline.size} timeouts and ${beats} beats fired, none early`);
