#!/usr/bin/env bash
# What follows the last unit, and what a capital M is, each library decides: duration-str 0.21.0
# reads 1h30 as an hour and 30 seconds, parse-duration 2.1.9 as an hour and a half, timestring
# 7.0.0 as an hour, and humantime 2.4.0 refuses it. 1M is a month to humantime and parse_duration
# 2.1.1, and a minute to the others.
# Guessed before the run: an hour and a half, or an error; and a month for all.
. "$(dirname "$0")/lib.sh"
rust 'humantime = "=2.4.0"' 'duration-str = "=0.21.0"' 'parse_duration = "=2.1.1"' <<'RUST'
fn print(name: &str, parse: impl Fn(&str) -> Option<std::time::Duration>) {
    let read = |text| parse(text).map_or("refused".into(), |time| format!("{} s", time.as_secs()));
    println!("{name}: 1h30: {}, 1M: {}", read("1h30"), read("1M"));
}

fn main() {
    print("humantime", |text| humantime::parse_duration(text).ok());
    print("duration-str", |text| duration_str::parse(text).ok());
    print("parse_duration", |text| parse_duration::parse(text).ok());
}
RUST
mv "$work/seen" "$work/all"
node parse-duration@2.1.9 timestring@7.0.0 <<'JS'
import parse from "parse-duration";
import timestring from "timestring";
const print = (name, read) => console.log(`${name}: 1h30: ${read("1h30")} s, 1M: ${read("1M")} s`);
print("parse-duration", (text) => parse(text, "s"));
print("timestring", timestring);
JS
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
humantime: 1h30: refused, 1M: 2630016 s
duration-str: 1h30: 3630 s, 1M: 60 s
parse_duration: 1h30: refused, 1M: 2629746 s
parse-duration: 1h30: 5400 s, 1M: 60 s
timestring: 1h30: 3600 s, 1M: 60 s
SEEN
