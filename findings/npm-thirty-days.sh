#!/usr/bin/env bash
# A time of 30 days is more milliseconds than Node's timers take (2^31), which then fire after one.
# Of 33 libraries of npm that take a time, 18 hand it on: a timeout of 30 days times out at once,
# with that number in its message; an entry is kept for no time; five retries after 30 days each are
# done in a third of a second, and five jobs, one each 30 days, are too. `delay` waits where
# p-timeout, p-retry, p-queue and p-throttle of one author do not (p-timeout 8 and p-retry 9, which
# need Node 22, wait, and p-queue 10 refuses); `timer` of rxjs fires at once even for a date. Two
# refuse such a time, and 13 are right.
# Guessed before the run: all caches and schedulers are right, or refuse, but one, and half of the
# rest.
. "$(dirname "$0")/lib.sh"
node p-timeout@7.0.2 promise-timeout@1.3.0 bluebird@3.7.2 delay@7.0.0 memory-cache@0.2.0 \
  node-cache@5.1.2 lru-cache@11.5.3 @isaacs/ttlcache@2.1.5 memoizee@0.4.17 expiry-map@2.0.0 \
  map-age-cleaner@0.2.0 ttl@1.3.1 timed-cache@2.0.0 ttl-cache@1.0.2 p-retry@7.1.1 \
  async-retry@1.3.3 exponential-backoff@3.1.3 cockatiel@3.2.1 opossum@9.0.0 toad-scheduler@4.1.0 \
  node-schedule@2.1.1 croner@11.0.1 rxjs@7.8.2 effect@4.1.0 bottleneck@2.19.5 p-throttle@8.1.1 \
  p-queue@9.3.5 lodash.throttle@4.1.1 lodash.debounce@4.0.8 keyv@6.1.0 limiter@4.1.0 \
  throttled-queue@3.0.0 async-sema@3.1.1 <<'JS'
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
process.removeAllListeners("warning");
const MONTH = 30 * 24 * 3600 * 1000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const work = () => sleep(300).then(() => "finished");
// What became of a promise after 300 ms.
const after = (promise) =>
  Promise.race([promise.then(() => "at once"), sleep(300).then(() => "waits")]);
// How often something was called in 300 ms.
const count = async (start) => {
  let calls = 0;
  start(() => { calls += 1; });
  await sleep(300);
  return calls;
};
const fails = (start) => count((call) =>
  start(() => { call(); throw new Error("fails"); })?.catch(() => {}));
const five = (start) => count((call) => {
  for (let job = 0; job < 5; job++) start(async () => call());
});
const kept = async (get) => {
  await sleep(300);
  return (await get()) ? "kept" : "gone";
};

const tests = {
  "p-timeout": async () => (await import("p-timeout")).default(work(), { milliseconds: MONTH }),
  "promise-timeout": () => require("promise-timeout").timeout(work(), MONTH),
  "bluebird": () => require("bluebird").resolve(work()).timeout(MONTH),
  "cockatiel": async () => {
    const { timeout, TimeoutStrategy } = await import("cockatiel");
    return timeout(MONTH, TimeoutStrategy.Aggressive).execute(work);
  },
  "opossum": () => new (require("opossum"))(work, { timeout: MONTH }).fire(),
  "bottleneck, expiration": () =>
    new (require("bottleneck"))().schedule({ expiration: MONTH }, work),
  "delay": async () => after((await import("delay")).default(MONTH)),
  "effect": async () => {
    const { Effect } = await import("effect");
    return after(Effect.runPromise(Effect.sleep(MONTH)));
  },
  "rxjs, timer": () => count((call) => require("rxjs").timer(MONTH).subscribe(call)),
  "rxjs, timer of a date": () => count((call) =>
    require("rxjs").timer(new Date(Date.now() + MONTH)).subscribe(call)),
  "node-schedule": () => count((call) =>
    require("node-schedule").scheduleJob(new Date(Date.now() + MONTH), call)),
  "croner": async () => {
    const { Cron } = await import("croner");
    return count((call) => new Cron(new Date(Date.now() + MONTH), call));
  },
  "toad-scheduler": async () => {
    const { ToadScheduler, SimpleIntervalJob, Task } = await import("toad-scheduler");
    return count((call) => new ToadScheduler().addSimpleIntervalJob(
      new SimpleIntervalJob({ days: 30 }, new Task("task", call))));
  },
  "p-retry": async () => {
    const { default: retry } = await import("p-retry");
    return fails((call) => retry(call, { minTimeout: MONTH, retries: 5 }));
  },
  "async-retry": () => fails((call) =>
    require("async-retry")(call, { minTimeout: MONTH, retries: 5 })),
  "exponential-backoff": () => fails((call) =>
    require("exponential-backoff").backOff(async () => call(),
      { startingDelay: MONTH, numOfAttempts: 6 })),
  "bottleneck, minTime": () => {
    const jobs = new (require("bottleneck"))({ minTime: MONTH });
    return five((job) => jobs.schedule(job));
  },
  "p-throttle": async () =>
    five((await import("p-throttle")).default({ limit: 1, interval: MONTH })((job) => job())),
  "p-queue": async () => {
    const queue = new (await import("p-queue")).default({ intervalCap: 1, interval: MONTH });
    return five((job) => queue.add(job));
  },
  "async-sema": () => {
    const limit = require("async-sema").RateLimit(1, { timeUnit: MONTH });
    return five((job) => limit().then(job));
  },
  "limiter": async () => {
    const { RateLimiter } = await import("limiter");
    const limit = new RateLimiter({ tokensPerInterval: 1, interval: MONTH });
    return five((job) => limit.removeTokens(1).then(job));
  },
  "throttled-queue": async () =>
    five((await import("throttled-queue")).throttledQueue({ maxPerInterval: 1, interval: MONTH })),
  "lodash.throttle": () => count(async (call) => {
    const throttled = require("lodash.throttle")(call, MONTH);
    for (let job = 0; job < 5; job++) await sleep(40).then(throttled);
  }),
  "lodash.debounce": () => count((call) => require("lodash.debounce")(call, MONTH)()),
  "memory-cache": () => {
    const cache = require("memory-cache");
    cache.put("key", 1, MONTH);
    return kept(() => cache.get("key"));
  },
  "node-cache": () => {
    const cache = new (require("node-cache"))({ stdTTL: MONTH / 1000 });
    cache.set("key", 1);
    return kept(() => cache.get("key"));
  },
  "lru-cache, ttlAutopurge": async () => {
    const { LRUCache } = await import("lru-cache");
    const cache = new LRUCache({ ttl: MONTH, ttlAutopurge: true });
    cache.set("key", 1);
    return kept(() => cache.get("key"));
  },
  "@isaacs/ttlcache": async () => {
    const { TTLCache } = await import("@isaacs/ttlcache");
    const cache = new TTLCache({ ttl: MONTH });
    cache.set("key", 1);
    return kept(() => cache.get("key"));
  },
  "memoizee": () => {
    require("memoizee")(() => 1, { maxAge: MONTH })();
    return "accepted";
  },
  "expiry-map": async () => {
    const cache = new (await import("expiry-map")).default(MONTH);
    cache.set("key", 1);
    return kept(() => cache.get("key"));
  },
  "map-age-cleaner": async () => {
    const { default: module } = await import("map-age-cleaner");
    const map = new Map([["key", { data: 1, maxAge: Date.now() + MONTH }]]);
    (module.default ?? module)(map);
    return kept(() => map.get("key"));
  },
  "ttl": () => {
    const cache = new (require("ttl"))({ ttl: MONTH });
    cache.put("key", 1);
    return kept(() => cache.get("key"));
  },
  "timed-cache": () => {
    const { default: module, TimedCache } = require("timed-cache");
    const cache = new (module ?? TimedCache ?? require("timed-cache"))({ defaultTtl: MONTH });
    cache.put("key", 1);
    return kept(() => cache.get("key"));
  },
  "ttl-cache": () => {
    const cache = new (require("ttl-cache"))({ ttl: MONTH / 1000, interval: 60 });
    cache.set("key", 1);
    return kept(() => cache.get("key"));
  },
  "keyv": async () => {
    const cache = new (await import("keyv")).default();
    await cache.set("key", 1, MONTH);
    return kept(() => cache.get("key"));
  },
};
for (const [name, test] of Object.entries(tests)) {
  let seen;
  try {
    seen = await test();
  } catch (error) {
    seen = `error: ${error.message.split(",")[0]}`;
  }
  console.log(`${name}: ${typeof seen === "number" ? `${seen} in 300 ms` : seen}`);
}
process.exit();
JS
seen <<'SEEN'
p-timeout: error: Promise timed out after 2592000000 milliseconds
promise-timeout: error: Timeout
bluebird: error: operation timed out
cockatiel: error: Operation timed out after 2592000000ms
opossum: error: Timed out after 2592000000ms
bottleneck, expiration: error: This job timed out after 2592000000 ms.
delay: waits
effect: waits
rxjs, timer: 1 in 300 ms
rxjs, timer of a date: 1 in 300 ms
node-schedule: 0 in 300 ms
croner: 0 in 300 ms
toad-scheduler: error: Due to setInterval limitations
p-retry: 6 in 300 ms
async-retry: 6 in 300 ms
exponential-backoff: 6 in 300 ms
bottleneck, minTime: 5 in 300 ms
p-throttle: 5 in 300 ms
p-queue: 5 in 300 ms
async-sema: 5 in 300 ms
limiter: 1 in 300 ms
throttled-queue: 1 in 300 ms
lodash.throttle: 1 in 300 ms
lodash.debounce: 0 in 300 ms
memory-cache: gone
node-cache: kept
lru-cache, ttlAutopurge: kept
@isaacs/ttlcache: kept
memoizee: error: 2592000000 exceeds maximum possible timeout
expiry-map: gone
map-age-cleaner: gone
ttl: gone
timed-cache: gone
ttl-cache: kept
keyv: kept
SEEN
