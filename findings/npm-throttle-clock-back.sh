#!/usr/bin/env bash
# Throttles of npm to one run in 100 ms, with a call each 10 ms: how often each runs, then after
# the wall clock was set back by an hour, then after it is right again. Three stand still until
# the clock has caught up; p-throttle for that hour even if the clock is put right. And the
# `throttle` of @github/mini-throttle 2.1.1 runs once, and not again while the calls go on: each
# call sets its timer anew.
# Guessed before the run: each runs each 100 ms, whatever the clock says.
. "$(dirname "$0")/lib.sh"
node lodash@4.18.1 underscore@1.13.8 throttle-debounce@5.0.2 throttleit@2.1.0 \
  @github/mini-throttle@2.1.1 just-throttle@4.2.0 p-throttle@8.1.1 rxjs@7.8.2 <<'JS'
import lodash from "lodash";
import underscore from "underscore";
import { throttle as throttleDebounce } from "throttle-debounce";
import throttleit from "throttleit";
import { throttle as mini } from "@github/mini-throttle";
import just from "just-throttle";
import pThrottle from "p-throttle";
import { Subject, throttleTime } from "rxjs";

const real = Date.now;
let runs = {};
const counted = (name) => () => { runs[name] = (runs[name] ?? 0) + 1; };
// Calls again once the call before has run: p-throttle keeps a queue.
function waiting(call) {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    call().then(() => { pending = false; });
  };
}
const subject = new Subject();
subject.pipe(throttleTime(100)).subscribe(counted("rxjs throttleTime"));
const calls = {
  "lodash": lodash.throttle(counted("lodash"), 100),
  "underscore": underscore.throttle(counted("underscore"), 100),
  "throttle-debounce": throttleDebounce(100, counted("throttle-debounce")),
  "throttleit": throttleit(counted("throttleit"), 100),
  "@github/mini-throttle": mini(counted("@github/mini-throttle"), 100),
  "just-throttle": just(counted("just-throttle"), 100),
  "p-throttle": waiting(pThrottle({ limit: 1, interval: 100 })(counted("p-throttle"))),
  "rxjs throttleTime": () => subject.next(),
};
// A call each 10 ms for 600 ms.
async function run() {
  runs = {};
  for (let i = 0; i < 60; i++) {
    for (const call of Object.values(calls)) call();
    await new Promise((done) => setTimeout(done, 10));
  }
  return runs;
}
const phases = [await run()];
Date.now = () => real() - 3_600_000;
phases.push(await run());
Date.now = real;
phases.push(await run());
for (const name of Object.keys(calls)) {
  const rates = phases.map((runs) => (runs[name] ?? 0) >= 4 ? "each 100 ms" : "at most once");
  console.log(`${name}: ${rates.join(", ")}`);
}
process.exit();
JS
seen <<'SEEN'
lodash: each 100 ms, each 100 ms, each 100 ms
underscore: each 100 ms, each 100 ms, each 100 ms
throttle-debounce: each 100 ms, at most once, each 100 ms
throttleit: each 100 ms, at most once, each 100 ms
@github/mini-throttle: at most once, at most once, at most once
just-throttle: each 100 ms, each 100 ms, each 100 ms
p-throttle: each 100 ms, at most once, at most once
rxjs throttleTime: each 100 ms, each 100 ms, each 100 ms
SEEN
