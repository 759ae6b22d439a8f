#!/usr/bin/env bash
# golang.org/x/time 0.16.0: a reservation that is cancelled while a later one exists gives its token
# to nobody: neither does the later one move forward, nor is the next one sooner. The same holds for
# a `Wait` whose context ends in the middle of a queue.
# Guessed before the run: those behind it move up, or the next one gets the place.
. "$(dirname "$0")/lib.sh"
golang golang.org/x/time@v0.16.0 <<'GO'
package main

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

func main() {
	limiter, now := rate.NewLimiter(10, 1), time.Now()
	reserve := func() *rate.Reservation { return limiter.ReserveN(now, 1) }
	first, second, third := reserve(), reserve(), reserve()
	fmt.Println(first.DelayFrom(now), second.DelayFrom(now), third.DelayFrom(now))
	second.CancelAt(now)
	fourth := reserve()
	fmt.Println("the second is cancelled:", third.DelayFrom(now), fourth.DelayFrom(now))
	fourth.CancelAt(now)
	fmt.Println("the last is cancelled:", reserve().DelayFrom(now))
}
GO
seen <<'SEEN'
0s 100ms 200ms
the second is cancelled: 200ms 300ms
the last is cancelled: 300ms
SEEN
