#!/usr/bin/env bash
# What is left of the jitter of an exponential backoff once its longest wait has been reached:
# 1,000 clients at the 30th try, each with 100 ms doubled up to 10 s. Six add the jitter first and
# cut afterwards, so that all clients wait for 10 s exactly and come together, just when an outage
# is long. Four cut first, so that the longest wait is 12 to 20 s.
# Guessed before the run: all are spread, and none waits longer than 10 s.
. "$(dirname "$0")/lib.sh"
python tenacity==9.2.1 backoff==2.2.1 <<'PYTHON'
import backoff
import tenacity


class State:
    attempt_number = 30


def full_jitter():
    waits = backoff.expo(base=2, factor=0.1, max_value=10)
    for _ in range(31):
        wait = next(waits)
    return backoff.full_jitter(wait)


for name, wait in [
    ("tenacity wait_exponential_jitter",
     lambda: tenacity.wait_exponential_jitter(multiplier=0.1, max=10)(State)),
    ("tenacity wait_random_exponential",
     lambda: tenacity.wait_random_exponential(multiplier=0.1, max=10)(State)),
    ("backoff full_jitter", full_jitter),
]:
    for _ in range(1000):
        print(f"{name} (Python): {wait() * 1000:.6f}")
PYTHON
mv "$work/seen" "$work/all"
golang github.com/cenkalti/backoff/v5@v5.0.3 github.com/avast/retry-go/v4@v4.7.0 \
  github.com/jpillora/backoff@v1.1.0 <<'GO'
package main

import (
	"errors"
	"fmt"
	"time"

	avast "github.com/avast/retry-go/v4"
	cenkalti "github.com/cenkalti/backoff/v5"
	jpillora "github.com/jpillora/backoff"
)

const first, longest = 100 * time.Millisecond, 10 * time.Second

// A timer that is over at once, and keeps what it was asked for.
type timer struct{ last time.Duration }

func (t *timer) After(d time.Duration) <-chan time.Time {
	t.last = d
	over := make(chan time.Time, 1)
	over <- time.Time{}
	return over
}

func main() {
	show := func(name string, wait time.Duration) {
		fmt.Printf("%s (Go): %f\n", name, float64(wait)/1e6)
	}
	for range 1000 {
		b := cenkalti.NewExponentialBackOff()
		b.InitialInterval, b.Multiplier, b.MaxInterval = first, 2, longest
		for range 29 {
			b.NextBackOff()
		}
		show("cenkalti/backoff", b.NextBackOff())
	}
	for range 1000 {
		recorded := &timer{}
		avast.Do(func() error { return errors.New("") }, avast.Attempts(31), avast.Delay(first),
			avast.MaxJitter(time.Second), avast.MaxDelay(longest), avast.WithTimer(recorded))
		show("avast/retry-go", recorded.last)
	}
	for range 1000 {
		b := jpillora.Backoff{Min: first, Max: longest, Factor: 2, Jitter: true}
		show("jpillora/backoff", b.ForAttempt(29))
	}
}
GO
cat "$work/seen" >>"$work/all"
node retry@0.13.1 cockatiel@3.2.1 <<'JS'
import retry from "retry";
import { ExponentialBackoff, fullJitterGenerator } from "cockatiel";

const show = (name, wait) => console.log(`${name} (JavaScript): ${wait.toFixed(6)}`);
const options = { factor: 2, minTimeout: 100, maxTimeout: 10_000, randomize: true };
const cockatiel = (generator) => {
  let backoff = new ExponentialBackoff({ initialDelay: 100, maxDelay: 10_000, ...generator });
  for (let i = 0; i < 30; i++) backoff = backoff.next();
  return backoff.duration;
};
for (let i = 0; i < 1000; i++) show("retry", retry.createTimeout(29, options));
for (let i = 0; i < 1000; i++) show("cockatiel", cockatiel({}));
for (let i = 0; i < 1000; i++) {
  show("cockatiel fullJitter", cockatiel({ generator: fullJitterGenerator }));
}
JS
cat "$work/seen" >>"$work/all"
java dev.failsafe:failsafe:3.3.2 io.github.resilience4j:resilience4j-core:2.3.0 <<'JAVA'
import dev.failsafe.*;
import dev.failsafe.spi.Scheduler;
import io.github.resilience4j.core.IntervalFunction;
import java.time.Duration;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;

class Main {
    static void show(String name, double milliseconds) {
        System.out.printf("%s (Java): %f%n", name, milliseconds);
    }

    public static void main(String[] none) throws Exception {
        Duration first = Duration.ofMillis(100), longest = Duration.ofSeconds(10);
        // Runs everything at once.
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(1);
        Scheduler scheduler = (task, delay, unit) -> pool.schedule(task, 0, unit);
        for (int i = 0; i < 1000; i++) {
            AtomicReference<Duration> last = new AtomicReference<>();
            RetryPolicy<Object> policy = RetryPolicy.builder().withBackoff(first, longest)
                .withJitter(0.25).withMaxRetries(30).onRetryScheduled(e -> last.set(e.getDelay()))
                .build();
            try {
                Failsafe.with(policy).with(scheduler)
                    .runAsync(() -> { throw new IllegalStateException(); }).get();
            } catch (ExecutionException expected) {
            }
            show("Failsafe", last.get().toNanos() / 1e6);
        }
        pool.shutdown();
        for (int i = 0; i < 1000; i++) {
            IntervalFunction waits =
                IntervalFunction.ofExponentialRandomBackoff(first, 2.0, 0.5, longest);
            show("resilience4j", waits.apply(30));
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
rust 'backon = "=1.6.0"' 'backoff = "=0.4.0"' <<'RUST'
use std::time::Duration;

use backoff::backoff::Backoff;
use backon::BackoffBuilder;

fn main() {
    let (first, longest) = (Duration::from_millis(100), Duration::from_secs(10));
    let show = |name: &str, wait: Duration| {
        println!("{name} (Rust): {}", wait.as_secs_f64() * 1e3)
    };
    for _ in 0..1000 {
        let waits = backon::ExponentialBuilder::new().with_jitter().with_min_delay(first);
        let mut waits = waits.with_max_delay(longest).with_max_times(40).build();
        show("backon", waits.nth(29).unwrap());
    }
    for _ in 0..1000 {
        let mut waits = backoff::ExponentialBackoffBuilder::new();
        waits.with_initial_interval(first).with_max_interval(longest).with_multiplier(2.0);
        let mut waits = waits.with_max_elapsed_time(None).build();
        show("backoff", (0..30).map(|_| waits.next_backoff().unwrap()).last().unwrap());
    }
}
RUST
cat "$work/seen" >>"$work/all"
# A name, and a wait in milliseconds.
awk -F': ' '
  !count[$1]++ { names[++n] = $1 }
  !known[$1, $2]++ { waits[$1]++ }
  $2 + 0 > longest[$1] + 0 { longest[$1] = $2 }
  END {
    for (i = 1; i <= n; i++) {
      name = names[i]
      print name ": " (waits[name] < 20 ? "all wait " longest[name] / 1000 " s" : \
        longest[name] > 10000 ? "spread beyond 10 s" : "spread below 10 s")
    }
  }' "$work/all" >"$work/seen"
seen <<'SEEN'
tenacity wait_exponential_jitter (Python): all wait 10 s
tenacity wait_random_exponential (Python): spread below 10 s
backoff full_jitter (Python): spread below 10 s
cenkalti/backoff (Go): spread beyond 10 s
avast/retry-go (Go): all wait 10 s
jpillora/backoff (Go): all wait 10 s
retry (JavaScript): all wait 10 s
cockatiel (JavaScript): all wait 10 s
cockatiel fullJitter (JavaScript): spread below 10 s
Failsafe (Java): spread beyond 10 s
resilience4j (Java): all wait 10 s
backon (Rust): spread beyond 10 s
backoff (Rust): spread beyond 10 s
SEEN
