#!/usr/bin/env bash
# limiter 3.0.0 (npm), `RateLimiter` with 5 tokens in 500 ms: a loop that awaits `removeTokens(1)`
# gets 5 in the first 500 ms, and then 6 in the 500 ms that begin with the sixth. The request that
# has waited for a new interval is counted in the old one.
# Guessed before the run: never more than 5 in the 500 ms that begin with the first token of an
# interval, as "maximum number of tokens that can be removed each interval" says.
. "$(dirname "$0")/lib.sh"
node limiter@3.0.0 <<'JS'
import { RateLimiter } from "limiter";

const limiter = new RateLimiter({ tokensPerInterval: 5, interval: 500 });
const times = [];
while (times.length < 12) {
  await limiter.removeTokens(1);
  times.push(Date.now());
}
for (const first of [0, 5]) {
  const within = times.filter((time) => time >= times[first] && time < times[first] + 490);
  console.log(`in the 490 ms after token ${first + 1}: ${within.length}`);
}
JS
seen <<'SEEN'
in the 490 ms after token 1: 5
in the 490 ms after token 6: 6
SEEN
