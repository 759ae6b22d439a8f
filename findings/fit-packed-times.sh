#!/usr/bin/env bash
# A FIT file, as sports watches write, of six records at 0, 2, 6, 6, 37 and 38 s; in the second one,
# all records but the first have their time in the header, as the lowest five bits of the seconds.
# Garmin's own SDKs for Python and JavaScript return the first record and an error; that for Java
# reads all. easy-fit leaves five records out without an error, and fit-decoder, fit-rust and
# fit-sdk-rust return them without their times. Eight of fourteen readers are right.
# Guessed before the run: all are right; it is what the format is known for.
. "$(dirname "$0")/lib.sh"
export FILES="$work/files"
mkdir "$FILES"
/usr/bin/env python3 - <<'PYTHON'
import os
import struct

START = 1_800_000_000 - 631_065_600  # Seconds since the last day of 1989.
TABLE = [0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401,
         0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400]
SECONDS = [0, 2, 6, 6, 37, 38]
TIME, PLACE = [(253, 4, 0x86)], [(0, 4, 0x85), (1, 4, 0x85)]


def checksum(data):
    value = 0
    for byte in data:
        for half in (byte & 15, byte >> 4):
            value = value >> 4 ^ TABLE[value & 15] ^ TABLE[half]
    return value


def definition(local, kind, fields):
    head = struct.pack("<BBBHB", 0x40 | local, 0, 0, kind, len(fields))
    return head + b"".join(map(bytes, fields))


def place(number):
    return struct.pack("<ii", (500 + number) * 10**6, 10**8)


def whole(number, second):
    return struct.pack("<BI", 1, START + second) + place(number)


def packed(number, second):
    return bytes([0x80 | 2 << 5 | (START + second) % 32]) + place(number)


for name, later in ("1 whole", whole), ("2 packed", packed):
    body = definition(0, 0, [(0, 1, 0), (1, 2, 0x84), (2, 2, 0x84), (4, 4, 0x86)])
    body += struct.pack("<BBHHI", 0, 4, 1, 1, START)
    body += definition(1, 20, TIME + PLACE) + definition(2, 20, PLACE)
    for number, second in enumerate(SECONDS):
        body += (later if number else whole)(number, second)
    head = struct.pack("<BBHI4s", 14, 0x10, 2100, len(body), b".FIT")
    data = head + struct.pack("<H", checksum(head)) + body
    with open(f"{os.environ['FILES']}/{name}.fit", "wb") as file:
        file.write(data + struct.pack("<H", checksum(data)))
PYTHON
python fitparse==1.2.0 fitdecode==0.11.0 garmin-fit-sdk==21.218.0 fit-tool==0.9.16 \
  setuptools==80.9.0 <<'PYTHON'
import datetime
import os
import pathlib

import fitdecode
import fitparse
import garmin_fit_sdk
from fit_tool.fit_file import FitFile
from fit_tool.profile.messages.record_message import RecordMessage


def with_fitparse(path):
    records = fitparse.FitFile(path).get_messages("record")
    return [record.get_value("timestamp") for record in records]


def with_fitdecode(path):
    return [frame.get_value("timestamp") for frame in fitdecode.FitReader(path)
            if isinstance(frame, fitdecode.FitDataMessage) and frame.name == "record"]


def with_garmin(path):
    messages, errors = garmin_fit_sdk.Decoder(garmin_fit_sdk.Stream.from_file(path)).read()
    return [record["timestamp"] for record in messages["record_mesgs"]] + ["error" for _ in errors]


def with_fit_tool(path):
    return [record.message.timestamp / 1000 for record in FitFile.from_file(path).records
            if isinstance(record.message, RecordMessage)]


def seconds(time):
    if isinstance(time, datetime.datetime):
        time = time.replace(tzinfo=datetime.timezone.utc).timestamp()
    return time if time == "error" else int(time) - 1_800_000_000


for path in sorted(pathlib.Path(os.environ["FILES"]).iterdir()):
    for read in (with_fitparse, with_fitdecode, with_garmin, with_fit_tool):
        print(f"{path.stem}|{read.__name__[5:]}|", *map(seconds, read(str(path))))
PYTHON
cat "$work/seen" >"$work/all"
node @garmin/fitsdk@21.217.0 fit-file-parser@6.1.2 fit-decoder@1.0.5 easy-fit@0.0.8 <<'JS'
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { Decoder, Stream } from "@garmin/fitsdk";

const require = createRequire(import.meta.url);
const callback = (name) => (data) => {
  const Parser = require(name).default;
  let times;
  new Parser({ force: true, mode: "list" }).parse(data, (error, { records }) => {
    times = error ? ["error"] : records.map((record) => record.timestamp);
  });
  return times;
};
const readers = {
  "garmin of npm": (data) => {
    const { messages, errors } = new Decoder(Stream.fromBuffer(data)).read();
    return messages.recordMesgs.map((record) => record.timestamp).concat(errors.map(() => "error"));
  },
  "fit-file-parser": callback("fit-file-parser"),
  "easy-fit": callback("easy-fit"),
  "fit-decoder": (data) => {
    const { fit2json, parseRecords } = require("fit-decoder");
    return parseRecords(fit2json(new Uint8Array(data).buffer)).records
      .filter((record) => record.type === "record")
      .map((record) => record.data.timestamp ?? "none");
  },
};
for (const file of readdirSync(process.env.FILES).sort()) {
  for (const [name, read] of Object.entries(readers)) {
    const times = read(readFileSync(`${process.env.FILES}/${file}`))
      .map((time) => (time instanceof Date ? time / 1000 - 1.8e9 : time));
    console.log(`${file.replace(".fit", "")}|${name}|`, ...times);
  }
}
JS
cat "$work/seen" >>"$work/all"
java com.garmin:fit:21.171.0 <<'JAVA'
import com.garmin.fit.Decode;
import com.garmin.fit.MesgBroadcaster;
import com.garmin.fit.RecordMesgListener;
import java.io.FileInputStream;

class Main {
    public static void main(String[] none) throws Exception {
        for (String name : new String[] {"1 whole", "2 packed"}) {
            StringBuilder times = new StringBuilder();
            MesgBroadcaster messages = new MesgBroadcaster(new Decode());
            messages.addListener((RecordMesgListener) record ->
                times.append(" ").append(record.getTimestamp().getTimestamp() - 1168934400L));
            String path = System.getenv("FILES") + "/" + name + ".fit";
            new Decode().read(new FileInputStream(path), messages, messages);
            System.out.println(name + "|garmin of Java|" + times);
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
golang github.com/muktihari/fit@v0.26.1 <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/muktihari/fit/decoder"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
)

func main() {
	for _, name := range []string{"1 whole", "2 packed"} {
		file, _ := os.Open(os.Getenv("FILES") + "/" + name + ".fit")
		fit, _ := decoder.New(file).Decode()
		fmt.Print(name, "|muktihari/fit|")
		for _, message := range fit.Messages {
			if message.Num == mesgnum.Record {
				time := message.FieldValueByNum(fieldnum.RecordTimestamp).Uint32()
				fmt.Print(" ", int64(time)-1_168_934_400)
			}
		}
		fmt.Println()
	}
}
GO
cat "$work/seen" >>"$work/all"
rust 'fitparser = "=0.11.0"' 'fit_file = "=0.6.0"' 'fit-rust = "=0.1.8"' 'fit-sdk-rust = "=0.2.1"' \
  'chrono = "0.4"' <<'RUST'
use fit_file::fit_file::{FitFieldValue, GLOBAL_MSG_NUM_RECORD};
use fit_rust::protocol::{FitMessage, message_type::MessageType, value::Value};

const START: i64 = 1_800_000_000;

fn note(time: u32, kind: u16, _: u8, _: u16, _: Vec<FitFieldValue>, times: &mut Vec<Option<i64>>) {
    if kind == GLOBAL_MSG_NUM_RECORD {
        times.push(Some(i64::from(time)));
    }
}

fn main() {
    for name in ["1 whole", "2 packed"] {
        let folder = std::env::var("FILES").unwrap();
        let data = std::fs::read(format!("{folder}/{name}.fit")).unwrap();
        let print = |reader: &str, times: Vec<Option<i64>>| {
            let text = times.iter().map(|time| match time {
                Some(time) => format!(" {}", time - START),
                None => " none".into(),
            });
            println!("{name}|{reader}|{}", text.collect::<String>());
        };

        let records = fitparser::from_bytes(&data).unwrap();
        let records = records.iter().filter(|record| record.kind().to_string() == "record");
        let times = records.map(|record| {
            let field = record.fields().iter().find(|field| field.name() == "timestamp")?;
            match field.value() {
                fitparser::Value::Timestamp(time) => Some(time.timestamp()),
                _ => None,
            }
        });
        print("fitparser", times.collect());

        let mut times = Vec::new();
        let _ = fit_file::fit_file::read(&mut std::io::BufReader::new(&data[..]), note, &mut times);
        print("fit_file", times);

        let mut times = Vec::new();
        for message in fit_rust::Fit::read(data.clone()).unwrap().data {
            if let FitMessage::Data(message) = message
                && message.data.message_type == MessageType::Record
            {
                times.push(message.data.values.iter().find_map(|field| match field.value {
                    Value::Time(time) => Some(i64::from(time)),
                    _ => None,
                }));
            }
        }
        print("fit-rust", times);

        let (messages, _) = fit::Decoder::builder(&data).build().read_all();
        let records = messages.iter().filter(|message| message.name == "record");
        let times = records.map(|record| match record.field("timestamp")?.value {
            fit::Value::DateTime(time) => Some(time.timestamp()),
            _ => None,
        });
        print("fit-sdk-rust", times.collect());
    }
}
RUST
cat "$work/seen" >>"$work/all"
# The times of each file, and who reads them so.
awk -F'|' '{ key = $1 ":" $3 } !(key in who) { keys[++n] = key }
  { who[key] = who[key] ", " $2 }
  END { for (i = 1; i <= n; i++) print keys[i] ":" substr(who[keys[i]], 2) }' "$work/all" |
  LC_ALL=C sort | fold -sw 96 | sed 's/ $//' >"$work/seen"
seen <<'SEEN'
1 whole: 0 2 6 6 37 38: fitparse, fitdecode, garmin, fit_tool, garmin of npm, fit-file-parser,
easy-fit, fit-decoder, garmin of Java, muktihari/fit, fitparser, fit_file, fit-rust,
fit-sdk-rust
2 packed: 0 2 6 6 37 38: fitparse, fitdecode, fit_tool, fit-file-parser, garmin of Java,
muktihari/fit, fitparser, fit_file
2 packed: 0 error: garmin, garmin of npm
2 packed: 0 none none none none none: fit-decoder, fit-rust, fit-sdk-rust
2 packed: 0: easy-fit
SEEN
