#!/usr/bin/env bash
# Events of a calendar in Berlin that have a DURATION instead of an end, where the clocks change
# meanwhile. By RFC 5545, P1D ends a day later at the same time of day, and PT24H after 24 hours.
# Of twelve libraries, only ical4j does both. To five, all durations are of the time of day: a
# night shift of eight hours takes seven in March, and nine in October. To six, a day has 24 hours.
# icalendar is of the first kind, and of the second once icalevents is imported anywhere in the
# same program.
# Guessed before the run: P1D is wrong in half, PT24H right in all.
. "$(dirname "$0")/lib.sh"
export FILES="$work/files"
mkdir "$FILES"
while IFS='|' read -r name start duration; do
  printf '%s\r\n' BEGIN:VCALENDAR VERSION:2.0 PRODID:-//finding//EN BEGIN:VTIMEZONE \
    TZID:Europe/Berlin BEGIN:DAYLIGHT TZOFFSETFROM:+0100 TZOFFSETTO:+0200 TZNAME:CEST \
    DTSTART:19810329T020000 'RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU' END:DAYLIGHT \
    BEGIN:STANDARD TZOFFSETFROM:+0200 TZOFFSETTO:+0100 TZNAME:CET DTSTART:19961027T030000 \
    'RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU' END:STANDARD END:VTIMEZONE BEGIN:VEVENT UID:1 \
    DTSTAMP:20270101T000000Z "DTSTART;TZID=Europe/Berlin:$start" "DURATION:$duration" \
    SUMMARY:event END:VEVENT END:VCALENDAR >"$FILES/$name.ics"
done <<'CASES'
1 a day|20270327T120000|P1D
2 24 hours|20270327T120000|PT24H
3 night in March|20270327T220000|PT8H
4 night in October|20271030T220000|PT8H
CASES
python icalendar==7.3.2 recurring-ical-events==3.8.2 ical==14.3.1 vobject==0.9.9 \
  icalevents==0.3.1 <<'PYTHON'
import datetime
import os
import pathlib

import icalendar
import recurring_ical_events
import vobject
from ical.calendar_stream import IcsCalendarStream

UTC = datetime.timezone.utc
YEAR = datetime.datetime(2027, 1, 1, tzinfo=UTC), datetime.datetime(2028, 1, 1, tzinfo=UTC)


def with_icalendar(text):
    return icalendar.Calendar.from_ical(text).walk("VEVENT")[0].end


def with_recurring(text):
    return recurring_ical_events.of(icalendar.Calendar.from_ical(text)).between(*YEAR)[0].end


def with_ical(text):
    return IcsCalendarStream.calendar_from_ics(text).events[0].end


def with_vobject(text):
    event = next(vobject.readComponents(text)).vevent
    return event.dtstart.value + event.duration.value


def with_icalevents(text):
    return icalparser.parse_events(text, start=YEAR[0], end=YEAR[1])[0].end


def run(readers):
    for path in sorted(pathlib.Path(os.environ["FILES"]).iterdir()):
        for library, read in readers.items():
            end = read(path.read_bytes().decode()).astimezone(UTC)
            print(f"{path.stem}|{end:%d %H:%M}|{library}")


run({"icalendar": with_icalendar, "recurring-ical-events": with_recurring, "ical": with_ical,
     "vobject": with_vobject})
from icalevents import icalparser

run({"icalevents": with_icalevents, "icalendar beside it": with_icalendar})
PYTHON
mv "$work/seen" "$work/all"
node ical.js@2.2.1 node-ical@0.26.1 ts-ics@2.4.6 <<'JS'
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import ICAL from "ical.js";
import { convertIcsCalendar, getEventEnd } from "ts-ics";

const nodeIcal = createRequire(import.meta.url)("node-ical");
const readers = {
  "ical.js": (text) => {
    const calendar = new ICAL.Component(ICAL.parse(text));
    ICAL.TimezoneService.register(calendar.getFirstSubcomponent("vtimezone"));
    return new ICAL.Event(calendar.getFirstSubcomponent("vevent")).endDate.toJSDate();
  },
  "node-ical": (text) =>
    Object.values(nodeIcal.sync.parseICS(text)).find((event) => event.type === "VEVENT").end,
  "ts-ics": (text) => getEventEnd(convertIcsCalendar(undefined, text).events[0]),
};
for (const file of readdirSync(process.env.FILES).sort()) {
  for (const [name, read] of Object.entries(readers)) {
    const end = read(readFileSync(`${process.env.FILES}/${file}`, "utf8")).toISOString();
    console.log(`${file.replace(".ics", "")}|${end.slice(8, 16).replace("T", " ")}|${name}`);
  }
}
JS
cat "$work/seen" >>"$work/all"
java org.mnode.ical4j:ical4j:4.1.1 net.sf.biweekly:biweekly:0.6.8 <<'JAVA'
import java.io.File;
import java.io.FileInputStream;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import net.fortuna.ical4j.data.CalendarBuilder;
import net.fortuna.ical4j.model.component.VEvent;

class Main {
    static void show(File file, String library, Instant end) {
        System.out.println(file.getName().replace(".ics", "|") + DateTimeFormatter
                .ofPattern("dd HH:mm").format(end.atOffset(ZoneOffset.UTC)) + "|" + library);
    }

    public static void main(String[] none) throws Exception {
        System.setProperty("net.fortuna.ical4j.timezone.cache.impl",
                "net.fortuna.ical4j.util.MapTimeZoneCache");
        File[] files = new File(System.getenv("FILES")).listFiles();
        Arrays.sort(files);
        for (File file : files) {
            var calendar = new CalendarBuilder().build(new FileInputStream(file));
            VEvent event = (VEvent) calendar.getComponent("VEVENT").get();
            var end = (ZonedDateTime) event.getEndDate(true).get().getDate();
            show(file, "ical4j", end.toInstant());
            var other = biweekly.Biweekly.parse(file).first().getEvents().get(0);
            var start = other.getDateStart().getValue();
            show(file, "biweekly", other.getDuration().getValue().add(start).toInstant());
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
golang github.com/apognu/gocal@v0.9.1 \
  github.com/emersion/go-ical@v0.0.0-20250329121855-f41e73efc392 <<'GO'
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/apognu/gocal"
	"github.com/emersion/go-ical"
)

func main() {
	paths, _ := filepath.Glob(os.Getenv("FILES") + "/*.ics")
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".ics")
		data, _ := os.ReadFile(path)
		show := func(library string, end time.Time) {
			fmt.Printf("%s|%s|%s\n", name, end.UTC().Format("02 15:04"), library)
		}
		calendar, _ := ical.NewDecoder(bytes.NewReader(data)).Decode()
		end, _ := calendar.Events()[0].DateTimeEnd(time.UTC)
		show("go-ical", end)
		parser := gocal.NewParser(bytes.NewReader(data))
		from, to := time.Unix(1798761600, 0), time.Unix(1830297600, 0)
		parser.Start, parser.End = &from, &to
		parser.Parse()
		show("gocal", *parser.Events[0].End)
	}
}
GO
cat "$work/seen" >>"$work/all"
# The ends of each event (UTC), and who says so.
who
seen <<'SEEN'
1 a day: 28 10:00: icalendar, recurring-ical-events, ical, vobject, ical.js, ical4j
1 a day: 28 11:00: icalevents, icalendar beside it, node-ical, ts-ics, biweekly, go-ical, gocal
2 24 hours: 28 10:00: icalendar, recurring-ical-events, ical, vobject, ical.js
2 24 hours: 28 11:00: icalevents, icalendar beside it, node-ical, ts-ics, ical4j, biweekly,
go-ical, gocal
3 night in March: 28 04:00: icalendar, recurring-ical-events, ical, vobject, ical.js
3 night in March: 28 05:00: icalevents, icalendar beside it, node-ical, ts-ics, ical4j,
biweekly, go-ical, gocal
4 night in October: 31 04:00: icalevents, icalendar beside it, node-ical, ts-ics, ical4j,
biweekly, go-ical, gocal
4 night in October: 31 05:00: icalendar, recurring-ical-events, ical, vobject, ical.js
SEEN
