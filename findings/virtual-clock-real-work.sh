#!/usr/bin/env bash
# Virtual clocks that move by themselves once nothing runs, and a deadline of an hour around a
# closure that sleeps for 50 ms in a thread of the library's own pool. The clocks of aiotools and
# of kotlinx.coroutines pass the hour meanwhile, as does that of fake-timers with Node's pool;
# those of looptime, trio and tokio wait.
# Guessed before the run: a clock waits for the pool of its own library.
. "$(dirname "$0")/lib.sh"
python aiotools==2.2.4 typing-extensions==4.16.0 looptime==0.9 trio==0.35.0 <<'PYTHON'
import asyncio
import time

import aiotools
import looptime
import trio
import trio.testing


async def with_asyncio():
    try:
        await asyncio.wait_for(asyncio.to_thread(time.sleep, 0.05), 3600)
        return "waits"
    except TimeoutError:
        return "times out"


async def with_aiotools():
    with aiotools.VirtualClock().patch_loop():
        return await with_asyncio()


async def with_trio():
    with trio.move_on_after(3600) as scope:
        await trio.to_thread.run_sync(time.sleep, 0.05)
    return "times out" if scope.cancelled_caught else "waits"


print("aiotools:", asyncio.run(with_aiotools()))
with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
    print("looptime:", runner.run(with_asyncio()))
clock = trio.testing.MockClock(autojump_threshold=0)
print("trio:", trio.run(with_trio, clock=clock))
PYTHON
mv "$work/seen" "$work/all"
rust 'tokio = { version = "=1.54.1", features = ["full", "test-util"] }' <<'RUST'
use std::time::Duration;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let thread = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(50)));
    let waits = tokio::time::timeout(Duration::from_secs(3600), thread).await.is_ok();
    println!("tokio: {}", if waits { "waits" } else { "times out" });
}
RUST
cat "$work/seen" >>"$work/all"
java org.jetbrains.kotlinx:kotlinx-coroutines-test-jvm:1.10.1 <<'JAVA'
import kotlin.Unit;
import kotlin.coroutines.*;
import kotlinx.coroutines.*;
import kotlinx.coroutines.test.TestBuildersKt;

class Main {
    static String thread;

    public static void main(String[] none) {
        TestBuildersKt.runTest(EmptyCoroutineContext.INSTANCE, 10_000, (test, next) ->
            TimeoutKt.withTimeoutOrNull(3_600_000, (scope, inner) ->
                BuildersKt.withContext(Dispatchers.getIO(), (pool, last) -> {
                    try {
                        Thread.sleep(50);
                    } catch (InterruptedException never) {
                    }
                    return "waits";
                }, inner), new Continuation<Object>() {
                    public CoroutineContext getContext() {
                        return next.getContext();
                    }

                    public void resumeWith(Object result) {
                        thread = result == null ? "times out" : (String) result;
                        next.resumeWith(Unit.INSTANCE);
                    }
                }));
        System.out.println("kotlinx-coroutines-test: " + thread);
    }
}
JAVA
cat "$work/seen" >>"$work/all"
node @sinonjs/fake-timers@15.5.0 <<'JS'
import { pbkdf2 } from "node:crypto";
import FakeTimers from "@sinonjs/fake-timers";

const clock = FakeTimers.install({ toFake: ["setTimeout"] });
clock.setTickMode({ mode: "nextAsync" });
// About 50 ms in a thread of Node's pool.
const thread = new Promise((done) => pbkdf2("", "", 100_000, 64, "sha512", () => done("waits")));
const hour = new Promise((done) => setTimeout(() => done("times out"), 3_600_000));
console.log("fake-timers:", await Promise.race([thread, hour]));
process.exit();
JS
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
aiotools: times out
looptime: waits
trio: waits
tokio: waits
kotlinx-coroutines-test: times out
fake-timers: times out
SEEN
