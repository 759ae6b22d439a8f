#!/usr/bin/env bash
# nanotimer 0.3.15 (npm): the last 25 ms of every timeout, and of every period, are spent in a loop.
# An interval of 100 ms takes a quarter of a CPU, one of 20 ms a whole one, for as long as it runs.
# Guessed before the run: a timeout sleeps until about a millisecond before its end.
. "$(dirname "$0")/lib.sh"
node nanotimer@0.3.15 <<'JS'
import NanoTimer from "nanotimer";

async function burns(name, wait) {
  const before = process.cpuUsage();
  await new Promise(wait);
  const { user, system } = process.cpuUsage(before);
  console.log(`${name}: at least 15 ms of CPU time: ${user + system >= 15_000}`);
}

const timer = new NanoTimer();
await burns("first use of both", (done) => timer.setTimeout(() => setTimeout(done, 1), "", "30m"));
await burns("nanotimer, 200 ms", (done) => timer.setTimeout(done, "", "200m"));
await burns("setTimeout, 200 ms", (done) => setTimeout(done, 200));
JS
sed -i 1d "$work/seen"
seen <<'SEEN'
nanotimer, 200 ms: at least 15 ms of CPU time: true
setTimeout, 200 ms: at least 15 ms of CPU time: false
SEEN
