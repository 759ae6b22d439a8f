#!/usr/bin/env bash
# cron 0.17.0: in the hour that is repeated when summer time ends, the times of a schedule are not
# in order: 02:00 of summer, 02:00 of winter, then 02:30 of summer, half an hour before. A loop
# that waits for each time runs the third at once. croner 4.0.3 has them in order.
# Guessed before the run: each half-hour of both hours, in order.
. "$(dirname "$0")/lib.sh"
rust 'cron = "=0.17.0"' 'croner = "=4.0.3"' 'chrono = "=0.4.42"' 'chrono-tz = "=0.10.4"' <<'RUST'
use chrono::{DateTime, TimeZone};
use chrono_tz::{Europe::Berlin, Tz};
use std::str::FromStr;

fn print(name: &str, times: impl Iterator<Item = DateTime<Tz>>) {
    let times: Vec<_> = times.take(6).map(|time| time.format("%H:%M%z").to_string()).collect();
    println!("{name}: {}", times.join(" "));
}

fn main() {
    let start = Berlin.with_ymd_and_hms(2025, 10, 26, 1, 15, 0).unwrap();
    let cron = cron::Schedule::from_str("0 */30 * * * *").unwrap();
    print("cron", cron.after(&start));
    let croner = croner::Cron::from_str("*/30 * * * *").unwrap();
    print("croner", croner.iter_after(start));
}
RUST
seen <<'SEEN'
cron: 01:30+0200 02:00+0200 02:00+0100 02:30+0200 02:30+0100 03:00+0100
croner: 01:30+0200 02:00+0200 02:30+0200 02:00+0100 02:30+0100 03:00+0100
SEEN
