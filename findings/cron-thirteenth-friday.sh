#!/usr/bin/env bash
# The runs in 2027 of three schedules of cron in 19 libraries, and the day of the week that most
# of them have: `0 0 13 * 5`, `0 0 */2 * 5` and `0 0 1-31 * 5`. By Debian's manual of cron, a job
# runs on either day if both fields "aren't *": 64, 212 and 365 runs, with Fridays, as seven have
# it. Three take a field that begins with a star as one that is not given (27 runs), two one that
# names all days (53 runs). Seven need both days, and two of these count the days of the week from
# another one.
# Guessed before the run: all but Celery do as cron does.
. "$(dirname "$0")/lib.sh"
python croniter==7.0.0 cronsim==2.8 pycron==3.3.0 crontab==1.0.5 apscheduler==3.11.3 \
  celery==5.7.0 huey==3.5.4 <<'PYTHON'
from datetime import datetime, timedelta, timezone

import croniter
import cronsim
import crontab
import pycron
from apscheduler.triggers.cron import CronTrigger
from celery.schedules import crontab as celery
from huey import crontab as huey

START, END = datetime(2026, 12, 31, 12), datetime(2028, 1, 1)
DAYS = [datetime(2027, 1, 1) + timedelta(days=day) for day in range(365)]
CRONS = "0 0 13 * 5", "0 0 */2 * 5", "0 0 1-31 * 5"


def aps(cron):
    trigger = CronTrigger.from_crontab(cron, timezone="UTC")
    run = START.replace(tzinfo=timezone.utc)
    while run := trigger.get_next_fire_time(run, run + timedelta(hours=1)):
        yield run.replace(tzinfo=None)


def by_celery(cron):
    run = START.replace(tzinfo=timezone.utc)
    minute, hour, day, month, weekday = cron.split()
    while True:
        schedule = celery(minute, hour, day_of_week=weekday, day_of_month=day, month_of_year=month,
                          nowfun=lambda: run)
        run += schedule.remaining_estimate(run)
        yield run.replace(tzinfo=None)


def by_crontab(cron):
    entry, run = crontab.CronTab(cron), START
    while True:
        run += timedelta(seconds=round(entry.next(run, default_utc=True)))
        yield run


def matching(matches):
    return lambda cron: iter([day for day in DAYS if matches(cron, day)] + [END])


for name, runs in {
    "croniter": lambda cron: croniter.croniter(cron, START).all_next(datetime),
    "cronsim": lambda cron: cronsim.CronSim(cron, START),
    "pycron": matching(pycron.is_now),
    "crontab": by_crontab,
    "APScheduler": aps,
    "Celery": by_celery,
    "huey": matching(lambda cron, day: huey(*cron.split())(day)),
}.items():
    for cron in CRONS:
        try:
            for run in runs(cron):
                if run >= END:
                    break
                print(name, "(Python)|", cron, "|", run.date())
        except ValueError:
            print(name, "(Python)|", cron, "|refused")
PYTHON
mv "$work/seen" "$work/all"
node cron@4.4.0 croner@11.0.1 cron-parser@5.10.6 cron-schedule@6.0.0 @breejs/later@4.2.0 <<'JS'
import { CronTime } from "cron";
import { Cron } from "croner";
import { CronExpressionParser } from "cron-parser";
import { parseCronExpression } from "cron-schedule";
import later from "@breejs/later";

const start = new Date("2026-12-31T12:00:00Z"), end = new Date("2028-01-01T00:00:00Z");
const next = {
  "cron": (cron) => {
    const time = new CronTime(cron, "UTC");
    return (from) => time.getNextDateFrom(from, "UTC").toJSDate();
  },
  "croner": (cron) => {
    const job = new Cron(cron, { timezone: "UTC", paused: true });
    return (from) => job.nextRun(from);
  },
  "cron-parser": (cron) => (from) =>
    CronExpressionParser.parse(cron, { currentDate: from, tz: "UTC" }).next().toDate(),
  "cron-schedule": (cron) => {
    const schedule = parseCronExpression(cron);
    return (from) => schedule.getNextDate(from);
  },
  "@breejs/later": (cron) => {
    later.date.UTC();
    const schedule = later.schedule(later.parse.cron(cron));
    return (from) => schedule.next(1, new Date(+from + 1000));
  },
};
for (const [name, runs] of Object.entries(next)) {
  for (const cron of ["0 0 13 * 5", "0 0 */2 * 5", "0 0 1-31 * 5"]) {
    try {
      const step = runs(cron);
      for (let run = step(start); run < end; run = step(run)) {
        console.log(`${name} (JavaScript)|${cron}|${run.toISOString().slice(0, 10)}`);
      }
    } catch (error) {
      console.log(`${name} (JavaScript)|${cron}|refused`);
    }
  }
}
process.exit();
JS
cat "$work/seen" >>"$work/all"
golang github.com/robfig/cron/v3@v3.0.1 github.com/hashicorp/cronexpr@v1.1.3 \
  github.com/adhocore/gronx@v1.20.4 <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/adhocore/gronx"
	"github.com/hashicorp/cronexpr"
	"github.com/robfig/cron/v3"
)

func main() {
	start := time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)
	show := func(name, expression string, next func(time.Time) time.Time) {
		for run := next(start); run.Year() == 2027; run = next(run) {
			fmt.Printf("%s (Go)|%s|%s\n", name, expression, run.Format(time.DateOnly))
		}
	}
	for _, expression := range []string{"0 0 13 * 5", "0 0 */2 * 5", "0 0 1-31 * 5"} {
		schedule, _ := cron.ParseStandard(expression)
		show("robfig/cron", expression, schedule.Next)
		show("cronexpr", expression, cronexpr.MustParse(expression).Next)
		show("gronx", expression, func(from time.Time) time.Time {
			run, _ := gronx.NextTickAfter(expression, from, false)
			return run
		})
	}
}
GO
cat "$work/seen" >>"$work/all"
java org.springframework:spring-context:6.2.3 com.cronutils:cron-utils:9.2.1 <<'JAVA'
import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinition;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import java.time.*;
import java.util.function.UnaryOperator;
import org.springframework.scheduling.support.CronExpression;

class Main {
    static void show(String name, String cron, UnaryOperator<ZonedDateTime> next) {
        ZonedDateTime run = ZonedDateTime.of(2026, 12, 31, 12, 0, 0, 0, ZoneOffset.UTC);
        while ((run = next.apply(run)).getYear() == 2027) {
            System.out.println(name + " (Java)|" + cron + "|" + run.toLocalDate());
        }
    }

    public static void main(String[] none) {
        CronDefinition definition = CronDefinitionBuilder.instanceDefinitionFor(CronType.UNIX);
        CronParser unix = new CronParser(definition);
        for (String cron : new String[] {"0 0 13 * 5", "0 0 */2 * 5", "0 0 1-31 * 5"}) {
            CronExpression spring = CronExpression.parse("0 " + cron);
            show("Spring", cron, run -> spring.next(run));
            ExecutionTime times = ExecutionTime.forCron(unix.parse(cron));
            show("cron-utils", cron, run -> times.nextExecution(run).get());
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
rust 'cron = "=0.17.0"' 'chrono = "=0.4.41"' 'croner = "=3.0.0"' <<'RUST'
use chrono::{DateTime, Datelike, TimeZone, Utc};

fn main() {
    let start = Utc.with_ymd_and_hms(2026, 12, 31, 12, 0, 0).unwrap();
    let show = |name: &str, cron: &str, runs: &mut dyn Iterator<Item = DateTime<Utc>>| {
        for run in runs.take_while(|run| run.year() == 2027) {
            println!("{name} (Rust)|{cron}|{}", run.date_naive());
        }
    };
    for cron in ["0 0 13 * 5", "0 0 */2 * 5", "0 0 1-31 * 5"] {
        let schedule: cron::Schedule = format!("0 {cron}").parse().unwrap();
        show("cron", cron, &mut schedule.after(&start));
        let schedule: croner::Cron = cron.parse().unwrap();
        show("croner", cron, &mut schedule.iter_after(start));
    }
}
RUST
cat "$work/seen" >>"$work/all"
# The number of runs and the day of the week on which most are, of each schedule.
/usr/bin/env python3 - "$work/all" >"$work/seen" <<'PYTHON'
import collections
import datetime
import sys

runs = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    name, cron, day = (part.strip() for part in line.split("|"))
    runs[name][cron].append(day)
for name, crons in runs.items():
    cells = []
    for days in crons.values():
        if days == ["refused"]:
            cells.append("refused")
            continue
        weekdays = collections.Counter(f"{datetime.date.fromisoformat(day):%A}" for day in days)
        cells.append(f"{len(days)} {weekdays.most_common(1)[0][0]}")
    print(f"{name}: {', '.join(cells)}")
PYTHON
seen <<'SEEN'
croniter (Python): 64 Friday, 212 Friday, 365 Friday
cronsim (Python): 64 Friday, 27 Friday, 365 Friday
pycron (Python): 64 Friday, 27 Friday, 365 Friday
crontab (Python): 1 Friday, 27 Friday, 53 Friday
APScheduler (Python): 3 Saturday, 26 Saturday, 52 Saturday
Celery (Python): 1 Friday, 27 Friday, 53 Friday
huey (Python): 1 Friday, 27 Friday, 53 Friday
cron (JavaScript): 64 Friday, 212 Friday, 53 Friday
croner (JavaScript): 64 Friday, 212 Friday, 365 Friday
cron-parser (JavaScript): 64 Friday, 212 Friday, 365 Friday
cron-schedule (JavaScript): 64 Friday, 212 Friday, 53 Friday
@breejs/later (JavaScript): 1 Friday, 27 Friday, 53 Friday
robfig/cron (Go): 64 Friday, 212 Friday, 365 Friday
cronexpr (Go): 64 Friday, 212 Friday, 365 Friday
gronx (Go): 64 Friday, 27 Friday, 365 Friday
Spring (Java): 1 Friday, 27 Friday, 53 Friday
cron-utils (Java): 64 Friday, 212 Friday, 365 Friday
cron (Rust): 1 Thursday, 26 Thursday, 52 Thursday
croner (Rust): 64 Friday, 212 Friday, 365 Friday
SEEN
