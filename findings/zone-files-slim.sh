#!/usr/bin/env bash
# Zone files of Berlin (TZif, RFC 9636), in January and July of 2027 and July of 2050. zic writes
# "slim" ones by default since 2020: behind the last change of the rules, in 1996, all times follow
# from a text at the end. dateutil and pytz take such a file for one of UTC, without an error; to
# the crate tzfile it is summer for ever. Of a "fat" file, which has all changes until 2037, as in
# Debian, the three are right until then. Go, Python's own zoneinfo, and the crates tz-rs, jiff and
# chrono are right everywhere.
# Guessed before the run: half know no summer time after the last change; none takes it for UTC.
. "$(dirname "$0")/lib.sh"
cat >"$work/rules" <<'RULES'
Rule EU 1981 max - Mar lastSun 1:00u 1:00 S
Rule EU 1996 max - Oct lastSun 1:00u 0 -
Zone Berlin 1:00 EU CE%sT
RULES
export FILES="$work/files"
for form in fat slim; do zic -b $form -d "$FILES/$form" "$work/rules"; done
# The first of January and July of 2027, and of July of 2050.
export TIMES="1798761600 1814400000 2540246400"
python python-dateutil==2.9.0.post0 pytz==2026.6 <<'PYTHON'
import datetime
import os
import zoneinfo

import dateutil.tz
import pytz.tzfile

READERS = {
    "dateutil": dateutil.tz.tzfile,
    "pytz": lambda path: pytz.tzfile.build_tzinfo("Berlin", open(path, "rb")),
    "zoneinfo": lambda path: zoneinfo.ZoneInfo.from_file(open(path, "rb")),
}
for form in ("fat", "slim"):
    for name, read in READERS.items():
        zone = read(f"{os.environ['FILES']}/{form}/Berlin")
        times = (datetime.datetime.fromtimestamp(int(time), zone)
                 for time in os.environ["TIMES"].split())
        hours = (time.utcoffset() // datetime.timedelta(hours=1) for time in times)
        print(f"{form}|{name}|", *hours)
PYTHON
mv "$work/seen" "$work/all"
golang <<'GO'
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	for _, form := range []string{"fat", "slim"} {
		data, _ := os.ReadFile(os.Getenv("FILES") + "/" + form + "/Berlin")
		zone, _ := time.LoadLocationFromTZData("Berlin", data)
		fmt.Print(form, "|Go|")
		for _, text := range strings.Fields(os.Getenv("TIMES")) {
			seconds, _ := strconv.ParseInt(text, 10, 64)
			_, offset := time.Unix(seconds, 0).In(zone).Zone()
			fmt.Print(" ", offset/3600)
		}
		fmt.Println()
	}
}
GO
cat "$work/seen" >>"$work/all"
rust 'tz-rs = "=0.7.3"' 'jiff = "=1.0.2"' 'tzfile = "=0.1.3"' 'chrono = "=0.4.45"' <<'RUST'
use chrono::{Local, Offset, TimeZone};

fn main() {
    let times: Vec<i64> =
        std::env::var("TIMES").unwrap().split(' ').map(|time| time.parse().unwrap()).collect();
    for form in ["fat", "slim"] {
        let path = format!("{}/{form}/Berlin", std::env::var("FILES").unwrap());
        let data = std::fs::read(&path).unwrap();
        let print = |name: &str, offset: &dyn Fn(i64) -> i32| {
            let hours = times.iter().map(|time| format!(" {}", offset(*time) / 3600));
            println!("{form}|{name}|{}", hours.collect::<String>());
        };

        let zone = tz::TimeZone::from_tz_data(&data).unwrap();
        print("tz-rs", &|time| zone.find_local_time_type(time).unwrap().ut_offset());
        let zone = jiff::tz::TimeZone::tzif("Berlin", &data).unwrap();
        let at = |time| jiff::Timestamp::from_second(time).unwrap();
        print("jiff", &|time| zone.to_offset(at(time)).seconds());
        let zone = tzfile::Tz::parse("Berlin", &data).unwrap();
        print("tzfile", &|time| {
            (&zone).timestamp_opt(time, 0).unwrap().offset().fix().local_minus_utc()
        });
        // The process has one thread.
        unsafe { std::env::set_var("TZ", &path) };
        print("chrono", &|time| {
            Local.timestamp_opt(time, 0).unwrap().offset().fix().local_minus_utc()
        });
    }
}
RUST
cat "$work/seen" >>"$work/all"
# The hours east of UTC of each form, and who reads it so.
awk -F'|' '{ key = $1 ":" $3 } !(key in who) { keys[++n] = key }
  { who[key] = who[key] ", " $2 }
  END { for (i = 1; i <= n; i++) print keys[i] ":" substr(who[keys[i]], 2) }' "$work/all" |
  LC_ALL=C sort >"$work/seen"
seen <<'SEEN'
fat: 1 2 1: dateutil, pytz, tzfile
fat: 1 2 2: zoneinfo, Go, tz-rs, jiff, chrono
slim: 0 0 0: dateutil, pytz
slim: 1 2 2: zoneinfo, Go, tz-rs, jiff, chrono
slim: 2 2 2: tzfile
SEEN
