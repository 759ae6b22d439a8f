#!/usr/bin/env bash
# Lyrics with times (LRC) of two lines at 10.5 and 20 s, in twelve readers. By an offset of +500
# ms, they come half a second earlier: ten do not know offsets, pylrc has the lines half a second
# later, and FFmpeg half a millisecond earlier, because it takes microseconds. 10.500 is 15 s in
# lyric-parser and subtitler, and an error in the crate lrc; 10.5 is 10.05 s in the last two.
# Guessed before the run: all read two and three digits; half know offsets, and all of these have
# the lines earlier.
. "$(dirname "$0")/lib.sh"
export FILES="$work/files"
mkdir "$FILES"
printf '[00:10.50]a\n[00:20.00]b\n' >"$FILES/1 two digits.lrc"
printf '[00:10.500]a\n[00:20.000]b\n' >"$FILES/2 three digits.lrc"
printf '[00:10.5]a\n[00:20.0]b\n' >"$FILES/3 one digit.lrc"
printf '[offset:+500]\n[00:10.50]a\n[00:20.00]b\n' >"$FILES/4 offset.lrc"
python pylrc==0.1.2 lemony-lrc-parser==0.5.0 lrctoolbox==1.3.0 av==18.1.0 <<'PYTHON'
import os
import pathlib

import av
import lemony_lrc_parser
import lrctoolbox
import pylrc


def with_ffmpeg(path):
    with av.open(str(path)) as file:
        return [float(packet.pts * packet.time_base) for packet in file.demux()
                if packet.pts is not None]


READERS = {
    "FFmpeg": with_ffmpeg,
    "pylrc": lambda path: [line.time for line in pylrc.parse(path.read_text())],
    "lemony-lrc-parser": lambda path: [
        line.start / 1000 for line in lemony_lrc_parser.loads(path.read_text())],
    "lrctoolbox": lambda path: [
        line.timestamp / 1000 for line in
        lrctoolbox.SyncedLyrics.load_from_lines(path.read_text().splitlines()).synced_lines],
}
for path in sorted(pathlib.Path(os.environ["FILES"]).iterdir()):
    for name, read in READERS.items():
        times = " ".join(f"{time:g}" for time in read(path)) or "none"
        print(f"{path.stem}|{times}|{name}")
PYTHON
mv "$work/seen" "$work/all"
node clrc@3.1.4 lrc-kit@1.2.1 paroles@2.3.0 lyric-parser@1.0.1 lrclib-api@2.1.1 \
  lrc-file-parser@2.4.2 <<'JS'
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { parse } from "clrc";
import LrcFile from "lrc-file-parser";
import { parseLocalLyrics } from "lrclib-api";
import { Lyrics } from "paroles";

const require = createRequire(import.meta.url);
const { Lrc } = require("lrc-kit");
const parser = require("lyric-parser");
const LyricParser = parser.default ?? parser.Lyric ?? parser;
const readers = {
  clrc: (text) => parse(text).map((line) => line.startMillisecond / 1000).filter((time) => time),
  "lrc-kit": (text) => Lrc.parse(text).lyrics.map((line) => line.timestamp),
  paroles: (text) => new Lyrics(text).lines.map((line) => line.time),
  "lyric-parser": (text) => new LyricParser(text).lines.map((line) => line.time / 1000),
  "lrclib-api": (text) => parseLocalLyrics(text).synced.map((line) => line.startTime),
  "lrc-file-parser": (text) => {
    const file = new LrcFile({});
    file.setLyric(text, "");
    return file.lines.map((line) => line.time / 1000);
  },
};
for (const file of readdirSync(process.env.FILES).sort()) {
  for (const [name, read] of Object.entries(readers)) {
    const times = read(readFileSync(`${process.env.FILES}/${file}`, "utf8")).join(" ") || "none";
    console.log(`${file.replace(".lrc", "")}|${times}|${name}`);
  }
}
process.exit();
JS
cat "$work/seen" >>"$work/all"
rust 'lrc = "=0.2.0"' 'subtitler = "=2.6.1"' <<'RUST'
fn print(name: &str, reader: &str, times: Vec<i64>) {
    let times: Vec<String> = times.iter().map(|time| (*time as f64 / 1e3).to_string()).collect();
    let text = if times.is_empty() { "error".into() } else { times.join(" ") };
    println!("{name}|{text}|{reader}");
}

fn main() {
    let folder = std::env::var("FILES").unwrap();
    for name in ["1 two digits", "2 three digits", "3 one digit", "4 offset"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.lrc")).unwrap();
        let lines = lrc::Lyrics::from_str(&text).map_or(Vec::new(), |lyrics| {
            lyrics.get_timed_lines().iter().map(|(tag, _)| tag.get_timestamp()).collect()
        });
        print(name, "lrc", lines);
        let data = subtitler::lrc::LrcData::parse(&text).unwrap();
        let times = data.lines.iter().flat_map(|line| &line.times_ms);
        print(name, "subtitler", times.map(|time| *time as i64).collect());
    }
}
RUST
cat "$work/seen" >>"$work/all"
# The times of each file, and who reads them so.
who
seen <<'SEEN'
1 two digits: 10.5 20: FFmpeg, pylrc, lemony-lrc-parser, lrctoolbox, clrc, lrc-kit, paroles,
lyric-parser, lrclib-api, lrc-file-parser, lrc, subtitler
2 three digits: 10.5 20: FFmpeg, pylrc, lemony-lrc-parser, lrctoolbox, clrc, lrc-kit, paroles,
lrclib-api, lrc-file-parser
2 three digits: 15 20: lyric-parser, subtitler
2 three digits: error: lrc
3 one digit: 10.05 20: lrc, subtitler
3 one digit: 10.5 20: FFmpeg, pylrc, lemony-lrc-parser, lrctoolbox, lrc-kit, paroles,
lrclib-api, lrc-file-parser
3 one digit: none: clrc, lyric-parser
4 offset: 10.4995 19.9995: FFmpeg
4 offset: 10.5 20: lemony-lrc-parser, lrctoolbox, clrc, lrc-kit, paroles, lyric-parser,
lrclib-api, lrc-file-parser, lrc, subtitler
4 offset: 11 20.5: pylrc
SEEN
