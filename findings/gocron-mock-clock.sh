#!/usr/bin/env bash
# github.com/go-co-op/gocron/v2 2.21.2 on a mock clock (clockwork 0.5.0): a job of each second runs
# once when the clock moves by 1.5 or 10.5 s. When it moves by 10 s, to the very time of a later
# run, the job runs hundreds of times before it is scheduled for the next second.
# Guessed before the run: ten times.
. "$(dirname "$0")/lib.sh"
golang github.com/go-co-op/gocron/v2@v2.21.2 github.com/jonboulle/clockwork@v0.5.0 <<'GO'
package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

func runs(move time.Duration) int32 {
	clock := clockwork.NewFakeClock()
	scheduler, _ := gocron.NewScheduler(gocron.WithClock(clock))
	var count atomic.Int32
	task := gocron.NewTask(func() { count.Add(1) })
	scheduler.NewJob(gocron.DurationJob(time.Second), task)
	scheduler.Start()
	clock.BlockUntil(1)
	clock.Advance(move)
	time.Sleep(500 * time.Millisecond)
	scheduler.Shutdown()
	return count.Load()
}

func main() {
	for _, move := range []time.Duration{1500, 10500, 10000} {
		move *= time.Millisecond
		n := runs(move)
		fmt.Printf("%v: once: %v, more than 10 times: %v\n", move, n == 1, n > 10)
	}
}
GO
seen <<'SEEN'
1.5s: once: true, more than 10 times: false
10.5s: once: true, more than 10 times: false
10s: once: false, more than 10 times: true
SEEN
