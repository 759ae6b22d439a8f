#!/usr/bin/env bash
# github.com/benbjohnson/clock 1.3.5: a mock clock sleeps a real millisecond for each timer that
# `Add` fires, so a test that moves it past 200 timers takes more than 200 ms.
# Guessed before the run: virtual time costs no real time but that of the callbacks.
. "$(dirname "$0")/lib.sh"
golang github.com/benbjohnson/clock@v1.3.5 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/benbjohnson/clock"
)

func main() {
	for _, timers := range []int{0, 200} {
		mock := clock.NewMock()
		for i := 0; i < timers; i++ {
			mock.AfterFunc(time.Duration(i+1)*time.Second, func() {})
		}
		start := time.Now()
		mock.Add(time.Hour)
		fmt.Printf("%d timers: at least 200 ms: %v\n", timers, time.Since(start) >= 200*time.Millisecond)
	}
}
GO
seen <<'SEEN'
0 timers: at least 200 ms: false
200 timers: at least 200 ms: true
SEEN
