#!/usr/bin/env bash
# github.com/reugn/go-quartz 0.15.2, adhocore/gronx 1.20.4 and gorhill/cronexpr (of 2018): on the
# day on which summer time ends, a job of each half-hour pauses for 90 minutes. They go from 01:30
# to the second 02:00, the one of winter. robfig/cron 3.0.1 does not.
# Guessed before the run: each half-hour of both hours.
. "$(dirname "$0")/lib.sh"
golang github.com/reugn/go-quartz@v0.15.2 github.com/adhocore/gronx@v1.20.4 \
  github.com/gorhill/cronexpr@v0.0.0-20180427100037-88b0669f7d75 \
  github.com/robfig/cron/v3@v3.0.1 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/adhocore/gronx"
	"github.com/gorhill/cronexpr"
	"github.com/reugn/go-quartz/quartz"
	"github.com/robfig/cron/v3"
)

func main() {
	berlin, _ := time.LoadLocation("Europe/Berlin")
	print := func(name string, next func(time.Time) time.Time) {
		fmt.Printf("%s:", name)
		at := time.Date(2025, 10, 26, 1, 15, 0, 0, berlin)
		for i := 0; i < 5; i++ {
			at = next(at).In(berlin)
			fmt.Print(at.Format(" 15:04-07"))
		}
		fmt.Println()
	}
	trigger, _ := quartz.NewCronTriggerWithLoc("0 */30 * * * ?", berlin)
	print("go-quartz", func(at time.Time) time.Time {
		next, _ := trigger.NextFireTime(at.UnixNano())
		return time.Unix(0, next)
	})
	print("gronx", func(at time.Time) time.Time {
		next, _ := gronx.NextTickAfter("*/30 * * * *", at, false)
		return next
	})
	print("cronexpr", cronexpr.MustParse("*/30 * * * *").Next)
	schedule, _ := cron.ParseStandard("*/30 * * * *")
	print("robfig", schedule.Next)
}
GO
seen <<'SEEN'
go-quartz: 01:30+02 02:00+01 02:30+01 03:00+01 03:30+01
gronx: 01:30+02 02:00+01 02:30+01 03:00+01 03:30+01
cronexpr: 01:30+02 02:00+01 02:30+01 03:00+01 03:30+01
robfig: 01:30+02 02:00+02 02:30+02 02:00+01 02:30+01
SEEN
