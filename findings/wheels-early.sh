#!/usr/bin/env bash
# Hashed and hierarchical wheels with a tick of 100 ms, and 100 timers of 1,050 ms each, set at many
# phases of the tick. Those of RussellLuo/timingwheel (2022-02-18) and of Kafka 4.1.1, which it
# follows, round the deadline down: up to a whole tick early. rfyiamcool/go-timewheel 1.1.0 is up to
# half a tick early and late. ouqiang/timewheel 1.0.1 (a tick of 1 s) takes whole seconds: 1,950 ms
# are over after as little as 1,000. Only Netty's HashedWheelTimer 4.2.7 is never early.
# Guessed before the run: late by up to a tick, never early.
. "$(dirname "$0")/lib.sh"
golang github.com/RussellLuo/timingwheel@v0.0.0-20220218152713-54845bda3108 \
  github.com/ouqiang/timewheel@v1.0.1 github.com/rfyiamcool/go-timewheel@v1.1.0 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/RussellLuo/timingwheel"
	ouqiang "github.com/ouqiang/timewheel"
	rfyiamcool "github.com/rfyiamcool/go-timewheel"
)

// Sets 100 timers within 700 ms, and says how early the earliest was.
func run(name string, wait time.Duration, set func(time.Duration, func())) {
	const count = 100
	late := make(chan time.Duration, count)
	for range count {
		begun := time.Now()
		set(wait, func() { late <- time.Since(begun) - wait })
		time.Sleep(7 * time.Millisecond)
	}
	least := time.Hour
	for range count {
		least = min(least, <-late)
	}
	fmt.Printf("%s: %d\n", name, -least.Milliseconds())
}

func main() {
	const tick, wait = 100 * time.Millisecond, 1050 * time.Millisecond
	first := timingwheel.NewTimingWheel(tick, 10)
	first.Start()
	run("RussellLuo", wait, func(after time.Duration, call func()) { first.AfterFunc(after, call) })
	second, _ := rfyiamcool.NewTimeWheel(tick, 10)
	second.Start()
	run("rfyiamcool", wait, func(after time.Duration, call func()) { second.Add(after, call) })
	third := ouqiang.New(time.Second, 10, func(call any) { call.(func())() })
	third.Start()
	key := 0
	run("ouqiang", 1950*time.Millisecond, func(after time.Duration, call func()) {
		key++
		third.AddTimer(after, key, call)
	})
}
GO
mv "$work/seen" "$work/all"
java org.apache.kafka:kafka-server-common:4.1.1 io.netty:netty-common:4.2.7.Final <<'JAVA'
import io.netty.util.HashedWheelTimer;
import java.util.concurrent.*;
import org.apache.kafka.server.util.timer.*;

public class Main {
    static final int COUNT = 100, WAIT = 1050;

    interface Wheel { void set(long millis, Runnable call); }

    static void run(String name, Wheel wheel) throws Exception {
        var late = new LinkedBlockingQueue<Long>();
        for (int n = 0; n < COUNT; n++) {
            long begun = System.nanoTime();
            wheel.set(WAIT, () -> late.add(System.nanoTime() - begun - WAIT * 1_000_000L));
            Thread.sleep(7);
        }
        long least = Long.MAX_VALUE;
        for (int n = 0; n < COUNT; n++) least = Math.min(least, late.take());
        System.out.println(name + ": " + -least / 1_000_000);
    }

    public static void main(String[] args) throws Exception {
        long now = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        var kafka = new SystemTimer("finding", 100, 10, now);
        var driver = new Thread(() -> {
            try {
                while (true) kafka.advanceClock(200);
            } catch (InterruptedException end) {
            }
        });
        driver.setDaemon(true);
        driver.start();
        run("Kafka", (millis, call) -> kafka.add(new TimerTask(millis) {
            public void run() { call.run(); }
        }));
        var netty = new HashedWheelTimer();
        run("Netty", (millis, call) ->
            netty.newTimeout(timeout -> call.run(), millis, TimeUnit.MILLISECONDS));
        System.exit(0);
    }
}
JAVA
cat "$work/seen" >>"$work/all"
# How early the earliest was, in ms; on a busy machine it may be less.
awk -F': ' '{ print $1 ": " ($2 > 500 ? "over half a second" : $2 > 70 ? "over 70 ms" :
  $2 > 30 ? "over 30 ms" : "not") " early" }' "$work/all" >"$work/seen"
seen <<'SEEN'
RussellLuo: over 70 ms early
rfyiamcool: over 30 ms early
ouqiang: over half a second early
Kafka: over 70 ms early
Netty: not early
SEEN
