#!/usr/bin/env bash
# @sinonjs/fake-timers 15.5.0: what a callback schedules for no later, by `setImmediate` or a
# timeout of 0, is a millisecond later. `tick(10)` makes the callback at 10 and leaves these two
# for 11. Made outside a callback, both run at the next tick of any length, of 0 too.
# Guessed before the run: `setImmediate` within the same tick, as in an event loop.
. "$(dirname "$0")/lib.sh"
node @sinonjs/fake-timers@15.5.0 <<'JS'
import timers from "@sinonjs/fake-timers";
const clock = timers.createClock(0);
const seen = [];
const schedule = () => {
  clock.setImmediate(() => seen.push(`immediate at ${clock.now}`));
  clock.setTimeout(() => seen.push(`timeout of 0 at ${clock.now}`), 0);
};
const tick = (millis) => {
  clock.tick(millis);
  console.log(`tick(${millis}):`, seen.splice(0).join(", ") || "nothing");
};
schedule();
tick(0);
clock.setTimeout(schedule, 10);
tick(10);
tick(1);
JS
seen <<'SEEN'
tick(0): immediate at 0, timeout of 0 at 0
tick(10): nothing
tick(1): immediate at 11, timeout of 0 at 11
SEEN
