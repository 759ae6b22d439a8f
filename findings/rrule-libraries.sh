#!/usr/bin/env bash
# Rules of calendars (RFC 5545) in eight libraries, for events in Berlin. ical.js makes a leap day
# of each year 1 March and the 20th Monday of a year each Monday, and does not know the last of two
# days of a week; it, lib-recur and biweekly have three other ideas of week 53. A daily event in the
# lost hour of March is an hour late in four, an hour early in two, and left out in one. Hourly
# events: in March two are at one moment in four libraries; in October six of the seven that know
# zones leave out an hour, and rrule the one before the change.
# Guessed before the run: all agree, but for zones; there, most are an hour late in March, and two
# of five have all hours of October.
. "$(dirname "$0")/lib.sh"
# Name, where it begins, its rule. Each begins at a time that is in the rule.
CASES="leap day|20240229T100000|FREQ=YEARLY;COUNT=3
20th Monday|19970519T090000|FREQ=YEARLY;COUNT=3;BYDAY=20MO
last of Monday and Friday|20270108T090000|FREQ=WEEKLY;COUNT=3;BYDAY=MO,FR;BYSETPOS=-1
week 53|20261228T090000|FREQ=YEARLY;COUNT=3;BYWEEKNO=53;BYDAY=MO
each five hours, at 9 and 10|20270101T090000|FREQ=HOURLY;INTERVAL=5;COUNT=3;BYHOUR=9,10
daily at 02:30|20270327T023000|FREQ=DAILY;COUNT=3
hourly, March|20270328T003000|FREQ=HOURLY;COUNT=5
hourly, October|20261025T003000|FREQ=HOURLY;COUNT=5"
export CASES
python python-dateutil==2.9.0.post0 <<'PYTHON'
import os

from dateutil import tz
from dateutil.rrule import rrulestr

for line in os.environ["CASES"].split("\n"):
    case, start, rule = line.split("|")
    text = f"DTSTART;TZID=Europe/Berlin:{start}\nRRULE:{rule}"
    for time in rrulestr(text, tzids=tz.gettz):
        print(f"{case}|dateutil (Python)|{time.timestamp():.0f}")
PYTHON
mv "$work/seen" "$work/all"
node rrule@2.8.1 rrule-temporal@2.2.8 ical.js@2.2.1 <<'JS'
import ICAL from "ical.js";
import rrule from "rrule";
import { RRuleTemporal } from "rrule-temporal";

const zone = "Europe/Berlin";
for (const line of process.env.CASES.split("\n")) {
  const [name, start, rule] = line.split("|");
  const text = `DTSTART;TZID=${zone}:${start}\nRRULE:${rule}`;
  const show = (library, times) => {
    for (const time of times) console.log(`${name}|${library} (JavaScript)|${time / 1000}`);
  };
  show("rrule", rrule.rrulestr(text).all());
  show("rrule-temporal",
    new RRuleTemporal({ rruleString: text }).all().map((time) => time.epochMilliseconds));
  // This one counts in local time; the zone is applied by who uses it.
  const iso = start.replace(/(....)(..)(.....)(..)(..)/, "$1-$2-$3:$4:$5");
  const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString(iso));
  for (let time; (time = iterator.next());) {
    console.log(`${name}|ical.js, local (JavaScript)|${time}`);
  }
}
process.exit();
JS
cat "$work/seen" >>"$work/all"
golang github.com/teambition/rrule-go@v1.8.2 <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/teambition/rrule-go"
)

func main() {
	for _, line := range strings.Split(os.Getenv("CASES"), "\n") {
		part := strings.Split(line, "|")
		set, _ := rrule.StrToRRuleSet("DTSTART;TZID=Europe/Berlin:" + part[1] + "\nRRULE:" + part[2])
		for _, time := range set.All() {
			fmt.Printf("%s|rrule-go (Go)|%d\n", part[0], time.Unix())
		}
	}
}
GO
cat "$work/seen" >>"$work/all"
java org.dmfs:lib-recur:0.17.1 net.sf.biweekly:biweekly:0.6.8 org.mnode.ical4j:ical4j:4.1.1 \
  <<'JAVA'
import biweekly.ICalVersion;
import biweekly.io.ParseContext;
import biweekly.io.scribe.property.RecurrenceRuleScribe;
import biweekly.parameter.ICalParameters;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Date;
import java.util.TimeZone;
import net.fortuna.ical4j.model.Recur;
import org.dmfs.rfc5545.DateTime;
import org.dmfs.rfc5545.recur.RecurrenceRule;

class Main {
    public static void main(String[] none) throws Exception {
        ZoneId berlin = ZoneId.of("Europe/Berlin");
        TimeZone zone = TimeZone.getTimeZone(berlin);
        for (String line : System.getenv("CASES").split("\n")) {
            String[] part = line.split("\\|");
            var format = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss");
            ZonedDateTime start = LocalDateTime.parse(part[1], format).atZone(berlin);
            var recur = new RecurrenceRule(part[2]).iterator(DateTime.parse(zone, part[1]));
            while (recur.hasNext()) {
                show(part[0], "lib-recur", recur.nextDateTime().getTimestamp());
            }
            ParseContext context = new ParseContext();
            context.setVersion(ICalVersion.V2_0);
            var rule = new RecurrenceRuleScribe()
                    .parseText(part[2], null, new ICalParameters(), context);
            var biweekly = rule.getDateIterator(Date.from(start.toInstant()), zone);
            while (biweekly.hasNext()) {
                show(part[0], "biweekly", biweekly.next().getTime());
            }
            for (var time : new Recur<ZonedDateTime>(part[2])
                    .getDates(start, start, start.plusYears(60), 5)) {
                show(part[0], "ical4j", time.toInstant().toEpochMilli());
            }
        }
        System.exit(0);
    }

    static void show(String name, String library, long millis) {
        System.out.println(name + "|" + library + " (Java)|" + millis / 1000);
    }
}
JAVA
cat "$work/seen" >>"$work/all"
# The times of each rule, and the libraries that have them.
/usr/bin/env python3 - "$work/all" >"$work/seen" <<'PYTHON'
import collections
import datetime
import os
import sys
import zoneinfo

times = collections.defaultdict(lambda: collections.defaultdict(list))
libraries = {}
for line in open(sys.argv[1]):
    case, library, time = line.strip().split("|")
    if "T" in time:
        time = datetime.datetime.fromisoformat(time)
    else:
        time = datetime.datetime.fromtimestamp(int(time), zoneinfo.ZoneInfo("Europe/Berlin"))
    libraries[library] = None
    times[case][library].append(time)
for case in times:
    print(case)
    groups = collections.defaultdict(list)
    for library in libraries:
        form = "%d %H:%M %Z" if "hourly" in case or "daily" in case else "%Y-%m-%d %H:%M"
        runs = ", ".join(f"{time:{form}}".strip() for time in times[case][library]) or "none"
        groups[runs].append(library.split(" (")[0])
    for runs, names in groups.items():
        print(f"  {', '.join(names)}\n    {runs}")
PYTHON
seen <<'SEEN'
leap day
  dateutil, rrule, rrule-temporal, rrule-go, lib-recur, biweekly, ical4j
    2024-02-29 10:00, 2028-02-29 10:00, 2032-02-29 10:00
  ical.js, local
    2024-02-29 10:00, 2025-03-01 10:00, 2026-03-01 10:00
20th Monday
  dateutil, rrule, rrule-temporal, rrule-go, lib-recur, biweekly, ical4j
    1997-05-19 09:00, 1998-05-18 09:00, 1999-05-17 09:00
  ical.js, local
    1997-05-19 09:00, 1997-05-26 09:00, 1997-06-02 09:00
last of Monday and Friday
  dateutil, rrule, rrule-temporal, rrule-go, lib-recur, biweekly, ical4j
    2027-01-08 09:00, 2027-01-15 09:00, 2027-01-22 09:00
  ical.js, local
    2027-01-08 09:00, 2027-01-11 09:00, 2027-01-15 09:00
week 53
  dateutil, rrule, rrule-temporal, rrule-go, ical4j
    2026-12-28 09:00, 2032-12-27 09:00, 2037-12-28 09:00
  ical.js, local
    2027-01-04 09:00, 2027-01-11 09:00, 2027-01-18 09:00
  lib-recur
    2026-12-28 09:00, 2027-12-27 09:00, 2029-12-31 09:00
  biweekly
    2026-12-28 09:00, 2029-12-31 09:00, 2030-12-30 09:00
each five hours, at 9 and 10
  dateutil, rrule, rrule-temporal, rrule-go, lib-recur, ical4j
    2027-01-01 09:00, 2027-01-02 10:00, 2027-01-06 09:00
  ical.js, local
    2027-01-01 09:00, 2027-01-01 10:00, 2027-01-02 09:00
  biweekly
    none
daily at 02:30
  dateutil, rrule
    27 02:30 CET, 28 01:30 CET, 29 02:30 CEST
  rrule-temporal
    27 02:30 CET, 29 02:30 CEST, 30 02:30 CEST
  ical.js, local
    27 02:30, 28 02:30, 29 02:30
  rrule-go, lib-recur, biweekly, ical4j
    27 02:30 CET, 28 03:30 CEST, 29 02:30 CEST
hourly, March
  dateutil
    28 00:30 CET, 28 01:30 CET, 28 01:30 CET, 28 03:30 CEST, 28 04:30 CEST
  rrule
    28 00:30 CET, 28 00:30 CET, 28 01:30 CET, 28 03:30 CEST, 28 04:30 CEST
  rrule-temporal, ical4j
    28 00:30 CET, 28 01:30 CET, 28 03:30 CEST, 28 04:30 CEST, 28 05:30 CEST
  ical.js, local
    28 00:30, 28 01:30, 28 02:30, 28 03:30, 28 04:30
  rrule-go
    28 00:30 CET, 28 01:30 CET, 28 03:30 CEST, 28 04:30 CEST
  lib-recur, biweekly
    28 00:30 CET, 28 01:30 CET, 28 03:30 CEST, 28 03:30 CEST, 28 04:30 CEST
hourly, October
  dateutil, rrule-temporal
    25 00:30 CEST, 25 01:30 CEST, 25 02:30 CEST, 25 03:30 CET, 25 04:30 CET
  rrule
    25 00:30 CEST, 25 02:30 CEST, 25 02:30 CET, 25 03:30 CET, 25 04:30 CET
  ical.js, local
    25 00:30, 25 01:30, 25 02:30, 25 03:30, 25 04:30
  rrule-go, lib-recur, biweekly
    25 00:30 CEST, 25 01:30 CEST, 25 02:30 CET, 25 03:30 CET, 25 04:30 CET
  ical4j
    25 00:30 CEST, 25 01:30 CEST, 25 02:30 CEST, 25 02:30 CET, 25 03:30 CET
SEEN
