#!/usr/bin/env bash
# bottleneck 2.19.5: `minTime` is kept between the planned starts. If the event loop was busy past
# several of them, those jobs start together: with a `minTime` of 50 ms, and 200 ms of work at 60
# ms, jobs start less than 10 ms apart.
# Guessed before the run: 50 ms between any two starts ("how long to wait after launching a job").
. "$(dirname "$0")/lib.sh"
node bottleneck@2.19.5 <<'JS'
import Bottleneck from "bottleneck";
const limiter = new Bottleneck({ minTime: 50 });
const starts = [];
const start = async () => starts.push(performance.now());
const jobs = [1, 2, 3, 4, 5].map(() => limiter.schedule(start));
setTimeout(() => {
  const begun = performance.now();
  while (performance.now() - begun < 200);
}, 60);
await Promise.all(jobs);
const gaps = starts.slice(1).map((start, i) => start - starts[i]);
console.log("a gap below 10 ms:", gaps.some((gap) => gap < 10));
JS
seen <<'SEEN'
a gap below 10 ms: true
SEEN
