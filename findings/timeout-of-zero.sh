#!/usr/bin/env bash
# A timeout of 0, as what is left of a deadline may be, and work that is done at once or takes 300
# ms, in 22 libraries. For five it is no limit at all: timeout-decorator, wrapt-timeout-decorator,
# stopit's `SignalTimeout`, a pool of pebble (Python) and opossum (npm). stopit's `ThreadingTimeout`
# ends even what is done at once, and a function under pebble's decorator is limited. asyncio's
# `wait_for` ends what is done at once, and `asyncio.timeout` does not. interruptingcow, p-timeout
# and p-queue refuse it.
# Guessed before the run: most return what is done at once, and end the other; timeout-decorator has
# no limit; p-timeout ends both.
. "$(dirname "$0")/lib.sh"
python async-timeout==5.0.1 anyio==4.16.0 trio==0.35.0 curio==1.6 gevent==26.9.0 eventlet==0.41.3 \
  func-timeout==4.3.5 timeout-decorator==0.5.0 wrapt-timeout-decorator==1.5.1 stopit==1.1.2 \
  interruptingcow==0.8 pebble==5.2.3 2>/dev/null <<'PYTHON'
import asyncio
import time

import anyio
import async_timeout
import curio
import eventlet
import func_timeout
import gevent
import interruptingcow
import pebble
import stopit
import timeout_decorator
import trio
import wrapt_timeout_decorator


def within(context, sleep=time.sleep):
    def run(work):
        with context():
            return work(sleep)
    return run


def asynchronous(context):
    async def run(work):
        async with context():
            return await work(asyncio.sleep)
    return run


def at_once(sleep):
    return "done"


def slow(sleep):
    sleep(0.3)
    return "done"


async def async_at_once(sleep):
    return "done"


async def async_slow(sleep):
    await sleep(0.3)
    return "done"


async def wait_for(work):
    return await asyncio.wait_for(work(asyncio.sleep), 0)


async def with_anyio(work):
    with anyio.fail_after(0):
        return await work(anyio.sleep)


async def with_trio(work):
    with trio.fail_after(0):
        return await work(trio.sleep)


async def with_curio(work):
    return await curio.timeout_after(0, work, curio.sleep)


def pool(work):
    with pebble.ProcessPool(1) as pool:
        return pool.schedule(work, args=[time.sleep], timeout=0).result()


BOTH, ASYNC = (at_once, slow), (async_at_once, async_slow)
for name, runner, works in [
    ("asyncio.wait_for", lambda work: asyncio.run(wait_for(work)), ASYNC),
    ("asyncio.timeout",
     lambda work: asyncio.run(asynchronous(lambda: asyncio.timeout(0))(work)), ASYNC),
    ("async-timeout",
     lambda work: asyncio.run(asynchronous(lambda: async_timeout.timeout(0))(work)), ASYNC),
    ("anyio", lambda work: anyio.run(with_anyio, work), ASYNC),
    ("trio", lambda work: trio.run(with_trio, work), ASYNC),
    ("curio", lambda work: curio.run(with_curio, work), ASYNC),
    ("gevent", within(lambda: gevent.Timeout(0), gevent.sleep), BOTH),
    ("eventlet", within(lambda: eventlet.Timeout(0), eventlet.sleep), BOTH),
    ("func-timeout", lambda work: func_timeout.func_timeout(0, work, (time.sleep,)), BOTH),
    ("timeout-decorator", lambda work: timeout_decorator.timeout(0)(work)(time.sleep), BOTH),
    ("wrapt-timeout-decorator",
     lambda work: wrapt_timeout_decorator.timeout(0)(work)(time.sleep), BOTH),
    ("stopit, signal", within(lambda: stopit.SignalTimeout(0, swallow_exc=False)), BOTH),
    ("stopit, thread", within(lambda: stopit.ThreadingTimeout(0, swallow_exc=False)), BOTH),
    ("interruptingcow", within(lambda: interruptingcow.timeout(0, RuntimeError)), BOTH),
    ("pebble, pool", pool, BOTH),
    ("pebble, decorator",
     lambda work: pebble.concurrent.process(timeout=0)(work)(time.sleep).result(), BOTH),
]:
    ends = []
    for work in works:
        try:
            ends.append(runner(work))
        except BaseException as error:
            ends.append("refused" if isinstance(error, ValueError) else "timed out")
    print(f"{name} (Python): {', '.join(ends)}")
PYTHON
mv "$work/seen" "$work/all"
node p-timeout@7.0.2 promise-timeout@1.3.0 bluebird@3.7.2 cockatiel@3.2.1 opossum@9.0.0 rxjs@7.8.2 \
  effect@4.1.0 bottleneck@2.19.5 p-queue@9.3.5 <<'JS'
import { createRequire } from "node:module";
import cockatiel from "cockatiel";
import { Effect } from "effect";
import PQueue from "p-queue";
import pTimeout from "p-timeout";
import { from, lastValueFrom, timeout } from "rxjs";

const require = createRequire(import.meta.url);
const atOnce = () => Promise.resolve("done");
const slow = () => new Promise((resolve) => setTimeout(() => resolve("done"), 300));
const libraries = {
  "p-timeout": async (work) => pTimeout(work(), { milliseconds: 0 }),
  "promise-timeout": (work) => require("promise-timeout").timeout(work(), 0),
  "bluebird": (work) => require("bluebird").resolve(work()).timeout(0),
  "cockatiel": (work) =>
    cockatiel.timeout(0, cockatiel.TimeoutStrategy.Aggressive).execute(work),
  "opossum": (work) => new (require("opossum"))(work, { timeout: 0 }).fire(),
  "rxjs": (work) => lastValueFrom(from(work()).pipe(timeout(0))),
  "effect": (work) => Effect.runPromise(Effect.promise(work).pipe(Effect.timeout(0))),
  "bottleneck": (work) => new (require("bottleneck"))().schedule({ expiration: 0 }, work),
  "p-queue": async (work) => new PQueue({ timeout: 0 }).add(work),
};
for (const [name, run] of Object.entries(libraries)) {
  const ends = [];
  for (const work of [atOnce, slow]) {
    ends.push(await run(work).catch((error) =>
      error instanceof TypeError ? "refused" : "timed out"));
  }
  console.log(`${name} (JavaScript): ${ends.join(", ")}`);
}
process.exit();
JS
cat "$work/seen" >>"$work/all" && mv "$work/all" "$work/seen"
seen <<'SEEN'
asyncio.wait_for (Python): timed out, timed out
asyncio.timeout (Python): done, timed out
async-timeout (Python): done, timed out
anyio (Python): done, timed out
trio (Python): done, timed out
curio (Python): done, timed out
gevent (Python): done, timed out
eventlet (Python): done, timed out
func-timeout (Python): done, timed out
timeout-decorator (Python): done, done
wrapt-timeout-decorator (Python): done, done
stopit, signal (Python): done, done
stopit, thread (Python): timed out, timed out
interruptingcow (Python): refused, refused
pebble, pool (Python): done, done
pebble, decorator (Python): done, timed out
p-timeout (JavaScript): refused, refused
promise-timeout (JavaScript): done, timed out
bluebird (JavaScript): done, timed out
cockatiel (JavaScript): done, timed out
opossum (JavaScript): done, done
rxjs (JavaScript): done, timed out
effect (JavaScript): done, timed out
bottleneck (JavaScript): done, timed out
p-queue (JavaScript): refused, refused
SEEN
