#!/usr/bin/env bash
# Ten seconds of Opus and of Vorbis whose first sample has the position of an hour, as of a stream
# that was recorded from its second hour on; both formats count from where a stream began. opusinfo,
# libsndfile 1.2 and symphonia say 10 s. mutagen, tinytag, lofty, music-metadata, MediaInfo and
# ogginfo say an hour and 10 s, and so does FFmpeg 8.1 of Opus, but not of Vorbis.
# Guessed before the run: FFmpeg is right, and all others have an hour too much.
. "$(dirname "$0")/lib.sh"
export FILES="$work/files"
mkdir "$FILES"
python soundfile==0.14.0 numpy==1.26.4 mutagen==1.48.1 tinytag==2.3.2 av==18.1.0 \
  pymediainfo==7.0.1 <<'PYTHON'
import os
import struct

import av
import mutagen
import numpy
import pymediainfo
import soundfile
import tinytag

TABLE = []
for byte in range(256):
    value = byte << 24
    for _ in range(8):
        value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    TABLE.append(value)


def checksum(page):
    value = 0
    for byte in page:
        value = (value << 8 & 0xFFFFFFFF) ^ TABLE[value >> 24 ^ byte]
    return value


def later(data, samples):
    start = 0
    while start < len(data):
        segments = data[start + 26]
        end = start + 27 + segments + sum(data[start + 27:start + 27 + segments])
        page = data[start:end]
        position, = struct.unpack("<q", page[6:14])
        if position > 0:
            page[6:14] = struct.pack("<q", position + samples)
            page[22:26] = bytes(4)
            page[22:26] = struct.pack("<I", checksum(page))
        yield page
        start = end


READERS = {
    "mutagen": lambda path: mutagen.File(path).info.length,
    "tinytag": lambda path: tinytag.TinyTag.get(path).duration,
    "libsndfile": lambda path: soundfile.info(path).duration,
    "FFmpeg": lambda path: av.open(path).duration / 1e6,
    "MediaInfo": lambda path: pymediainfo.MediaInfo.parse(path).audio_tracks[0].duration / 1e3,
}
tone = numpy.sin(numpy.arange(480_000) * 0.05) / 2
for kind, name in [("OPUS", "opus.opus"), ("VORBIS", "vorbis.ogg")]:
    path = os.environ["FILES"] + "/" + name
    soundfile.write(path, tone, 48_000, format="OGG", subtype=kind)
    data = bytearray(open(path, "rb").read())
    open(path, "wb").write(b"".join(later(data, 3600 * 48_000)))
    for reader, read in READERS.items():
        print(f"{name}: {round(read(path))} s: {reader}")
PYTHON
mv "$work/seen" "$work/all"
node music-metadata@11.16.1 <<'JS'
import { readdirSync } from "node:fs";
import { parseFile } from "music-metadata";

for (const name of readdirSync(process.env.FILES)) {
  const { format } = await parseFile(`${process.env.FILES}/${name}`);
  console.log(`${name}: ${Math.round(format.duration)} s: music-metadata`);
}
JS
cat "$work/seen" >>"$work/all"
rust 'lofty = "=0.22.4"' 'symphonia = { version = "=0.5.5", features = ["ogg", "vorbis"] }' <<'RUST'
use lofty::prelude::*;
use symphonia::core::io::MediaSourceStream;
use symphonia::default::get_probe;

fn main() {
    for entry in std::fs::read_dir(std::env::var("FILES").unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let tags = lofty::read_from_path(&path).unwrap();
        println!("{name}: {:.0} s: lofty", tags.properties().duration().as_secs_f64());
        let file = std::fs::File::open(&path).unwrap();
        let stream = MediaSourceStream::new(Box::new(file), Default::default());
        let probed = get_probe()
            .format(&Default::default(), stream, &Default::default(), &Default::default())
            .unwrap();
        let track = &probed.format.default_track().unwrap().codec_params;
        let seconds = track.n_frames.unwrap() as f64 / 48_000.0;
        println!("{name}: {seconds:.0} s: symphonia");
    }
}
RUST
cat "$work/seen" >>"$work/all"
debian opus-tools=0.2-1+b1 vorbis-tools=1.4.2-1+b1 libogg0=1.3.5-3 libvorbis0a=1.3.7-1
{
  opusinfo "$FILES/opus.opus" | sed -nE 's/.*length: ([0-9]+)m:([0-9]+).*/\1 \2/p' |
    awk '{ print "opus.opus:", $1 * 60 + $2, "s: opusinfo" }'
  ogginfo "$FILES/vorbis.ogg" | sed -nE 's/.*length: ([0-9]+)m:([0-9]+).*/\1 \2/p' |
    awk '{ print "vorbis.ogg:", $1 * 60 + $2, "s: ogginfo" }'
} >>"$work/all"
# The lengths of each file, and who says so.
awk -F': ' '{ key = $1 ": " $2 } !(key in who) { keys[++n] = key }
  { who[key] = who[key] " " $3 }
  END { for (i = 1; i <= n; i++) print keys[i] ":" who[keys[i]] }' "$work/all" |
  LC_ALL=C sort >"$work/seen"
seen <<'SEEN'
opus.opus: 10 s: libsndfile symphonia opusinfo
opus.opus: 3610 s: mutagen tinytag FFmpeg MediaInfo music-metadata lofty
vorbis.ogg: 10 s: libsndfile FFmpeg symphonia
vorbis.ogg: 3610 s: mutagen tinytag MediaInfo music-metadata lofty ogginfo
SEEN
