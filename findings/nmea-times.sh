#!/usr/bin/env bash
# What GPS receivers send (NMEA 0183) at half a second, with one, two, three and six digits; at the
# leap second of 2016; and in 1994. nmea-simple 3.3.0 (npm) reads a fraction in RMC only if it has
# two digits, and takes another for none: of a receiver that sends milliseconds, all fixes of a
# second have one time. In ZDA it reads them. The leap second is an error to pynmea2 and marineapi,
# has no time for pynmeagps, and is the first second of 2017 to nmea-simple, gps and go-nmea. 1994
# is 2094 for go-nmea.
# Guessed before the run: all read the fractions; half refuse the leap second, and half read 1994.
. "$(dirname "$0")/lib.sh"
/usr/bin/env python3 - >"$work/lines" <<'PYTHON'
from functools import reduce

for name, kind, time, date in [
    ("one digit", "RMC", "123519.5", "150327"), ("two digits", "RMC", "123519.50", "150327"),
    ("three digits", "RMC", "123519.500", "150327"),
    ("six digits", "RMC", "123519.500000", "150327"), ("ZDA", "ZDA", "123519.5", "15,03,2027"),
    ("leap second", "RMC", "235960.00", "311216"), ("1994", "RMC", "123519.00", "230394"),
]:
    line = (f"GPZDA,{time},{date},00,00" if kind == "ZDA" else
            f"GPRMC,{time},A,4807.038,N,01131.000,E,022.4,084.4,{date},003.1,W")
    print(f"{name}|${line}*{reduce(lambda sum, byte: sum ^ byte, line.encode()):02X}")
PYTHON
export LINES_FILE=$work/lines
python pynmea2==1.19.0 pynmeagps==1.1.8 <<'PYTHON'
import datetime
import os

import pynmea2
from pynmeagps import NMEAReader


def with_pynmea2(line):
    return pynmea2.parse(line).datetime


def with_pynmeagps(line):
    found = NMEAReader.parse(line + "\r\n")
    date = getattr(found, "date", None) or datetime.date(found.year, found.month, found.day)
    return datetime.datetime.combine(date, found.time) if found.time else "none"


for library, read in {"pynmea2": with_pynmea2, "pynmeagps": with_pynmeagps}.items():
    for line in open(os.environ["LINES_FILE"]):
        name, line = line.strip().split("|")
        try:
            time = read(line)
            if isinstance(time, datetime.datetime):
                time = time.replace(tzinfo=None).isoformat("T", "milliseconds")
        except Exception:
            time = "error"
        print(f"{name}|{time}|{library}")
PYTHON
mv "$work/seen" "$work/all"
node nmea-simple@3.3.0 gps@0.9.0 <<'JS'
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { parseNmeaSentence } = require("nmea-simple");
const module = require("gps");
const GPS = module.GPS ?? module.default ?? module;
for (const line of readFileSync(process.env.LINES_FILE, "utf8").trim().split("\n")) {
  const [name, sentence] = line.split("|");
  const show = (library, time) =>
    console.log(`${name}|${time.toISOString().slice(0, 23)}|${library}`);
  show("nmea-simple", parseNmeaSentence(sentence).datetime);
  show("gps", GPS.Parse(sentence).time);
}
JS
cat "$work/seen" >>"$work/all"
golang github.com/adrianmo/go-nmea@v1.10.0 <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/adrianmo/go-nmea"
)

func main() {
	lines, _ := os.ReadFile(os.Getenv("LINES_FILE"))
	for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		part := strings.Split(line, "|")
		read, err := nmea.Parse(part[1])
		time := "error"
		if rmc, ok := read.(nmea.RMC); ok && err == nil {
			time = nmea.DateTime(0, rmc.Date, rmc.Time).Format("2006-01-02T15:04:05.000")
		} else if zda, ok := read.(nmea.ZDA); ok && err == nil {
			time = fmt.Sprintf("%d-%02d-%02dT%02d:%02d:%02d.%03d", zda.Year, zda.Month, zda.Day,
				zda.Time.Hour, zda.Time.Minute, zda.Time.Second, zda.Time.Millisecond)
		}
		fmt.Printf("%s|%s|go-nmea\n", part[0], time)
	}
}
GO
cat "$work/seen" >>"$work/all"
java net.sf.marineapi:marineapi:0.12.0 <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;
import net.sf.marineapi.nmea.parser.SentenceFactory;
import net.sf.marineapi.nmea.sentence.DateSentence;
import net.sf.marineapi.nmea.sentence.TimeSentence;

class Main {
    public static void main(String[] none) throws Exception {
        for (String line : Files.readAllLines(Path.of(System.getenv("LINES_FILE")))) {
            String[] part = line.split("\\|");
            String found;
            try {
                var sentence = SentenceFactory.getInstance().createParser(part[1]);
                var time = ((TimeSentence) sentence).getTime();
                found = "%sT%02d:%02d:%06.3f".formatted(
                        ((DateSentence) sentence).getDate().toISO8601(), time.getHour(),
                        time.getMinutes(), time.getSeconds());
            } catch (IllegalArgumentException e) {
                found = "error";
            }
            System.out.println(part[0] + "|" + found + "|marineapi");
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
# The times of each line, and who reads it so.
awk -F'|' '{ key = $1 ": " $2 } !(key in who) { keys[++n] = key }
  { who[key] = who[key] " " $3 }
  END { for (i = 1; i <= n; i++) print keys[i] ":" who[keys[i]] }' "$work/all" |
  LC_ALL=C sort >"$work/seen"
seen <<'SEEN'
1994: 1994-03-23T12:35:19.000: pynmea2 pynmeagps nmea-simple gps marineapi
1994: 2094-03-23T12:35:19.000: go-nmea
ZDA: 2027-03-15T12:35:19.500: pynmea2 pynmeagps nmea-simple gps go-nmea marineapi
leap second: 2017-01-01T00:00:00.000: nmea-simple gps go-nmea
leap second: error: pynmea2 marineapi
leap second: none: pynmeagps
one digit: 2027-03-15T12:35:19.000: nmea-simple
one digit: 2027-03-15T12:35:19.500: pynmea2 pynmeagps gps go-nmea marineapi
six digits: 2027-03-15T12:35:19.000: nmea-simple
six digits: 2027-03-15T12:35:19.500: pynmea2 pynmeagps gps go-nmea marineapi
three digits: 2027-03-15T12:35:19.000: nmea-simple
three digits: 2027-03-15T12:35:19.500: pynmea2 pynmeagps gps go-nmea marineapi
two digits: 2027-03-15T12:35:19.500: pynmea2 pynmeagps nmea-simple gps go-nmea marineapi
SEEN
