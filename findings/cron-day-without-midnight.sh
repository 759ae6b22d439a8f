#!/usr/bin/env bash
# In Cairo, summer time begins at midnight: 2027-04-30, a Friday, begins at 01:00. A job of each
# Friday at midnight (`0 0 * * 5`) has no run in that week in 11 of 20 schedulers, systemd's timers
# among them; the others run it at 01:00. Nine of the 11 also leave out what Berlin loses in March,
# a daily job at 02:30; APScheduler and netresearch/go-cron move that one to 03:30, and lose the
# other. In Havana, summer time ends at midnight, and 2026-11-01 has two of them: six run a daily
# job at both, ten at the first, four at the second.
# Guessed before the run: half leave the day out and half are at 01:00, each as in Berlin; and all
# but two have one run in Havana.
. "$(dirname "$0")/lib.sh"
python croniter==7.0.0 cronsim==2.8 apscheduler==3.11.3 celery==5.7.0 <<'PYTHON'
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import croniter
import cronsim
from apscheduler.triggers.cron import CronTrigger
from celery.schedules import crontab


def aps(cron, start):
    # By name: the days of the week are counted from Monday here.
    trigger = CronTrigger.from_crontab(cron.replace("* 5", "* fri"), timezone=start.tzinfo)
    run = None
    while run := trigger.get_next_fire_time(run, run or start):
        yield run


def celery(cron, run):
    minute, hour, day, month, weekday = cron.split()
    zone = run.tzinfo
    while True:
        schedule = crontab(minute, hour, day_of_week=weekday, day_of_month=day,
                           month_of_year=month, nowfun=lambda: run)
        schedule.tz = zone
        rest = schedule.remaining_estimate(run)
        run = (run.astimezone(timezone.utc) + rest).astimezone(zone)
        yield run


for cron, zone, start, end in [
    ("0 0 * * 5", "Africa/Cairo", datetime(2027, 4, 28, 12), datetime(2027, 5, 4)),
    ("30 2 * * *", "Europe/Berlin", datetime(2027, 3, 27, 12), datetime(2027, 3, 29)),
    ("0 0 * * *", "America/Havana", datetime(2026, 10, 31, 12), datetime(2026, 11, 1, 12)),
]:
    start, end = (time.replace(tzinfo=ZoneInfo(zone)) for time in (start, end))
    for name, runs in {
        "croniter": croniter.croniter(cron, start).all_next(datetime),
        "cronsim": cronsim.CronSim(cron, start),
        "APScheduler": aps(cron, start),
        "Celery": celery(cron, start),
    }.items():
        print(f"{name} (Python)|{zone}|")
        for run in runs:
            if run.timestamp() >= end.timestamp():
                break
            print(f"{name} (Python)|{zone}|{run.timestamp():.0f}")
PYTHON
mv "$work/seen" "$work/all"
# For the other languages: schedule, zone, where to begin, where to end, in seconds.
CASES="0 0 * * 5|Africa/Cairo|1808906400|1809378000
30 2 * * *|Europe/Berlin|1806145200|1806271200
0 0 * * *|America/Havana|1793462400|1793552400"
export CASES
node cron@4.4.0 croner@11.0.1 cron-parser@5.10.6 <<'JS'
import { CronTime } from "cron";
import { Cron } from "croner";
import { CronExpressionParser } from "cron-parser";

const schedulers = {
  "cron": (cron, zone) => {
    const time = new CronTime(cron, zone);
    return (from) => time.getNextDateFrom(from, zone).toJSDate();
  },
  "croner": (cron, zone) => {
    const job = new Cron(cron, { timezone: zone, paused: true });
    return (from) => job.nextRun(from);
  },
  "cron-parser": (cron, zone) => (from) =>
    CronExpressionParser.parse(cron, { currentDate: from, tz: zone }).next().toDate(),
};
for (const line of process.env.CASES.split("\n")) {
  const [cron, zone, start, end] = line.split("|");
  for (const [name, next] of Object.entries(schedulers)) {
    console.log(`${name} (JavaScript)|${zone}|`);
    const step = next(cron, zone);
    for (let run = step(new Date(start * 1000)); run < end * 1000; run = step(run)) {
      console.log(`${name} (JavaScript)|${zone}|${run / 1000}`);
    }
  }
}
process.exit();
JS
cat "$work/seen" >>"$work/all"
golang github.com/robfig/cron/v3@v3.0.1 github.com/hashicorp/cronexpr@v1.1.3 \
  github.com/adhocore/gronx@v1.20.4 github.com/reugn/go-quartz@v0.15.2 \
  github.com/netresearch/go-cron@v0.9.1 <<'GO'
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/adhocore/gronx"
	"github.com/hashicorp/cronexpr"
	gocron "github.com/netresearch/go-cron"
	"github.com/reugn/go-quartz/quartz"
	"github.com/robfig/cron/v3"
)

func main() {
	for _, line := range strings.Split(os.Getenv("CASES"), "\n") {
		part := strings.Split(line, "|")
		zone, _ := time.LoadLocation(part[1])
		start, _ := strconv.ParseInt(part[2], 10, 64)
		end, _ := strconv.ParseInt(part[3], 10, 64)
		show := func(name string, next func(time.Time) time.Time) {
			fmt.Printf("%s (Go)|%s|\n", name, zone)
			run := next(time.Unix(start, 0).In(zone)).In(zone)
			for ; run.Unix() < end; run = next(run).In(zone) {
				fmt.Printf("%s (Go)|%s|%d\n", name, zone, run.Unix())
			}
		}
		robfig, _ := cron.ParseStandard(part[0])
		show("robfig/cron", robfig.Next)
		show("cronexpr", cronexpr.MustParse(part[0]).Next)
		netresearch, _ := gocron.ParseStandard(part[0])
		show("netresearch/go-cron", netresearch.Next)
		show("gronx", func(from time.Time) time.Time {
			run, _ := gronx.NextTickAfter(part[0], from, false)
			return run
		})
		// Here a question mark is one of the two days, and Sunday is 1.
		expression := strings.NewReplacer("* * 5", "? * 6", "* * *", "* * ?").Replace(part[0])
		trigger, _ := quartz.NewCronTriggerWithLoc("0 "+expression, zone)
		show("go-quartz", func(from time.Time) time.Time {
			run, _ := trigger.NextFireTime(from.UnixNano())
			return time.Unix(0, run)
		})
	}
}
GO
cat "$work/seen" >>"$work/all"
java org.springframework:spring-context:6.2.3 com.cronutils:cron-utils:9.2.1 \
  org.quartz-scheduler:quartz:2.5.2 org.jobrunr:jobrunr:7.3.2 \
  io.micronaut:micronaut-context:4.10.15 com.github.kagkarlsson:db-scheduler:15.1.1 \
  it.sauronsoftware.cron4j:cron4j:2.2.5 <<'JAVA'
import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinition;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import com.github.kagkarlsson.scheduler.task.schedule.CronSchedule;
import it.sauronsoftware.cron4j.Predictor;
import java.time.*;
import java.util.Date;
import java.util.TimeZone;
import java.util.function.UnaryOperator;
import org.springframework.scheduling.support.CronExpression;

class Main {
    static void show(String name, String[] part, UnaryOperator<Instant> next) {
        System.out.println(name + " (Java)|" + part[1] + "|");
        Instant run = Instant.ofEpochSecond(Long.parseLong(part[2]));
        while ((run = next.apply(run)).getEpochSecond() < Long.parseLong(part[3])) {
            System.out.println(name + " (Java)|" + part[1] + "|" + run.getEpochSecond());
        }
    }

    public static void main(String[] none) throws Exception {
        CronDefinition definition = CronDefinitionBuilder.instanceDefinitionFor(CronType.UNIX);
        for (String line : System.getenv("CASES").split("\n")) {
            String[] part = line.split("\\|");
            String cron = part[0];
            ZoneId zone = ZoneId.of(part[1]);
            Instant start = Instant.ofEpochSecond(Long.parseLong(part[2]));
            CronExpression spring = CronExpression.parse("0 " + cron);
            show("Spring", part, run -> spring.next(run.atZone(zone)).toInstant());
            ExecutionTime times = ExecutionTime.forCron(new CronParser(definition).parse(cron));
            show("cron-utils", part,
                    run -> times.nextExecution(run.atZone(zone)).get().toInstant());
            String days = cron.replace("* * 5", "? * 6").replace("* * *", "* * ?");
            var quartz = new org.quartz.CronExpression("0 " + days);
            quartz.setTimeZone(TimeZone.getTimeZone(zone));
            show("Quartz", part,
                    run -> quartz.getNextValidTimeAfter(Date.from(run)).toInstant());
            var jobrunr = org.jobrunr.scheduling.cron.CronExpression.create(cron);
            show("JobRunr", part, run -> jobrunr.next(start, run, zone));
            CronSchedule db = new CronSchedule("0 " + cron, zone);
            show("db-scheduler", part, run -> db.getInitialExecutionTime(run));
            var micronaut = io.micronaut.scheduling.cron.CronExpression.create("0 " + cron);
            show("Micronaut", part, run -> micronaut.nextTimeAfter(run.atZone(zone)).toInstant());
            show("cron4j", part, run -> {
                Predictor predictor = new Predictor(cron, Date.from(run));
                predictor.setTimeZone(TimeZone.getTimeZone(zone));
                return predictor.nextMatchingDate().toInstant();
            });
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
debian systemd=252.39-1~deb12u2 libsystemd-shared=252.39-1~deb12u2
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH/systemd
while IFS="|" read -r cron zone start end; do
  case $cron in "0 0 * * 5") days="Fri" ;; "30 2 * * *") days="*-*-* 02:30" ;; *) days=daily ;; esac
  echo "systemd|$zone|"
  TZ=$zone systemd-analyze calendar --iterations=2 --base-time="@$start" "$days" |
    sed -n 's/.*(in UTC): //p' | while read -r run; do
    run=$(date -d "$run" +%s)
    if ((run < end)); then echo "systemd|$zone|$run"; fi
  done
done <<<"$CASES" >>"$work/all"
/usr/bin/env python3 - "$work/all" >"$work/seen" <<'PYTHON'
import collections
import datetime
import sys
import zoneinfo

schedulers = collections.defaultdict(lambda: collections.defaultdict(list))
for line in open(sys.argv[1]):
    name, zone, run = line.strip().split("|")
    runs = schedulers[name][zone]
    if run:
        at = datetime.datetime.fromtimestamp(int(run), zoneinfo.ZoneInfo(zone))
        runs.append(f"{at:%H:%M %Z}" if zone == "America/Havana" else f"{at:%H:%M}")
for name, zones in schedulers.items():
    cells = [f"{zone.split('/')[1]} {' and '.join(zones[zone]) or 'none'}" for zone in zones]
    print(f"{name}: {', '.join(cells)}")
PYTHON
seen <<'SEEN'
croniter (Python): Cairo 01:00, Berlin 03:00, Havana 00:00 CDT and 00:00 CST
cronsim (Python): Cairo 01:00, Berlin 03:00, Havana 00:00 CDT
APScheduler (Python): Cairo none, Berlin 03:30, Havana 00:00 CDT and 00:00 CST
Celery (Python): Cairo 01:00, Berlin 03:30, Havana 00:00 CDT
cron (JavaScript): Cairo 01:00, Berlin 03:00, Havana 00:00 CDT
croner (JavaScript): Cairo 01:00, Berlin 03:00, Havana 00:00 CDT
cron-parser (JavaScript): Cairo 01:00, Berlin 03:30, Havana 00:00 CST
robfig/cron (Go): Cairo none, Berlin none, Havana 00:00 CDT and 00:00 CST
cronexpr (Go): Cairo none, Berlin none, Havana 00:00 CDT and 00:00 CST
netresearch/go-cron (Go): Cairo none, Berlin 03:30, Havana 00:00 CDT and 00:00 CST
gronx (Go): Cairo none, Berlin none, Havana 00:00 CDT
go-quartz (Go): Cairo 01:00, Berlin 03:30, Havana 00:00 CDT
Spring (Java): Cairo none, Berlin none, Havana 00:00 CST
cron-utils (Java): Cairo none, Berlin none, Havana 00:00 CDT
Quartz (Java): Cairo none, Berlin none, Havana 00:00 CST
JobRunr (Java): Cairo 01:00, Berlin 03:30, Havana 00:00 CDT
db-scheduler (Java): Cairo none, Berlin none, Havana 00:00 CDT
Micronaut (Java): Cairo none, Berlin none, Havana 00:00 CDT and 00:00 CST
cron4j (Java): Cairo 01:00, Berlin 03:30, Havana 00:00 CST
systemd: Cairo none, Berlin none, Havana 00:00 CDT
SEEN
