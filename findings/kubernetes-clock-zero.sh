#!/usr/bin/env bash
# k8s.io/utils 0.0.0-20261023123148 (clock/testing): a timer of no time, or of a negative one, does
# not fire on a `FakeClock` until the test steps it, be it by nothing. On the real clock it fires
# at once, as it does on clockwork 0.5.0.
# Guessed before the run: it fires at once.
. "$(dirname "$0")/lib.sh"
golang k8s.io/utils@v0.0.0-20261023123148-ca04ba58ecab github.com/jonboulle/clockwork@v0.5.0 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"
	"k8s.io/utils/clock/testing"
)

func main() {
	for _, delay := range []time.Duration{0, -time.Second} {
		fmt.Printf("After(%v): clockwork %v, ", delay, len(clockwork.NewFakeClock().After(delay)))
		clock := testing.NewFakeClock(time.Unix(0, 0))
		fired := clock.After(delay)
		before := len(fired)
		clock.Step(0)
		fmt.Printf("k8s %v, after Step(0) %v\n", before, len(fired))
	}
}
GO
seen <<'SEEN'
After(0s): clockwork 1, k8s 0, after Step(0) 1
After(-1s): clockwork 1, k8s 0, after Step(0) 1
SEEN
