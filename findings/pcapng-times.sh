#!/usr/bin/env bash
# A packet of 2027-01-15 08:00:00.25 in files of pcapng whose interfaces count in microseconds (what
# holds without an option), in nanoseconds, in units of 2^-20 s, or from an offset in seconds; then
# one of each of the first three in one file. libpcap 1.10.3 and wiretap 4.0.17 read all of them.
# dpkt takes the unit of the first interface for all; gopacket is 177 us early at 2^-20 s; scapy,
# python-pcapng, pcarp and pcap-file ignore the offset; and pcap-file takes every count for
# nanoseconds, so that the usual file is of January 1970.
# Guessed before the run: all are right, but for nanoseconds that are lost in floating point.
. "$(dirname "$0")/lib.sh"
export FILES="$work/files"
mkdir "$FILES"
/usr/bin/env python3 - <<'PYTHON'
import os
import struct

START = 1_800_000_000
NANOSECONDS = struct.pack("<HHB3x", 9, 1, 9)
OF_TWO = struct.pack("<HHB3x", 9, 1, 0x80 | 20)
OFFSET = struct.pack("<HHq", 14, 8, 1_700_000_000)
MICROS, NANOS, TWO = START * 10**6 + 250_000, START * 10**9 + 250_000_000, START << 20 | 1 << 18


def block(kind, body):
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


for name, interfaces in {
    "1 us": [(b"", MICROS)],
    "2 ns": [(NANOSECONDS, NANOS)],
    "3 of two": [(OF_TWO, TWO)],
    "4 offset": [(OFFSET, MICROS - 1_700_000_000 * 10**6)],
    "5 us, ns, of two": [(b"", MICROS), (NANOSECONDS, NANOS), (OF_TWO, TWO)],
}.items():
    with open(os.environ["FILES"] + "/" + name, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        for options, _ in interfaces:
            end = struct.pack("<HH", 0, 0) if options else b""
            file.write(block(1, struct.pack("<HHI", 1, 0, 65535) + options + end))
        for number, (_, time) in enumerate(interfaces):
            high, low = divmod(time, 1 << 32)
            file.write(block(6, struct.pack("<5I", number, high, low, 60, 60) + bytes(60)))
PYTHON
debian tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 wireshark-common=4.0.17-0+deb12u3 \
  libwiretap13=4.0.17-0+deb12u3 libwireshark16=4.0.17-0+deb12u3 libwsutil14=4.0.17-0+deb12u3
for file in "$FILES"/*; do
  name=$(basename "$file")
  tcpdump -Z root --time-stamp-precision=nano -tt -r "$file" 2>/dev/null |
    sed "s/ .*//; s/^/libpcap: $name: /"
  editcap -F nsecpcap "$file" "$work/pcap"
  python3 - "$work/pcap" "$name" <<'PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read()[24:]
while data:
    seconds, nanoseconds, length = struct.unpack("<III", data[:12])
    print(f"wiretap: {sys.argv[2]}: {seconds}.{nanoseconds:09}")
    data = data[16 + length:]
PYTHON
done >"$work/all"
python dpkt==1.9.8 scapy==2.6.1 python-pcapng==2.1.1 <<'PYTHON'
import os
import pathlib

import dpkt
import pcapng
from scapy.utils import PcapNgReader

for path in sorted(pathlib.Path(os.environ["FILES"]).iterdir()):
    with path.open("rb") as file:
        for time, _ in dpkt.pcapng.Reader(file):
            print(f"dpkt: {path.name}: {time:.6f}")
    with path.open("rb") as file:
        for block in pcapng.FileScanner(file):
            if isinstance(block, pcapng.blocks.EnhancedPacket):
                print(f"python-pcapng: {path.name}: {block.timestamp:.6f}")
    for packet in PcapNgReader(str(path)):
        print(f"scapy: {path.name}: {packet.time:.6f}")
PYTHON
cat "$work/seen" >>"$work/all"
golang github.com/gopacket/gopacket/pcapgo@v1.7.7 <<'GO'
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopacket/gopacket/pcapgo"
)

func main() {
	files, _ := filepath.Glob(os.Getenv("FILES") + "/*")
	for _, path := range files {
		file, _ := os.Open(path)
		options := pcapgo.NgReaderOptions{WantMixedLinkType: true}
		reader, err := pcapgo.NewNgReader(file, options)
		for err == nil {
			_, about, failure := reader.ReadPacketData()
			if err = failure; err == nil {
				time := about.Timestamp
				fmt.Printf("gopacket: %s: %d.%06d\n", filepath.Base(path), time.Unix(),
					time.Nanosecond()/1000)
			}
		}
	}
}
GO
cat "$work/seen" >>"$work/all"
rust 'pcap-file = "=2.0.0"' 'pcarp = "=2.0.0"' <<'RUST'
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

fn print(reader: &str, name: &str, time: Duration) {
    println!("{reader}: {name}: {}.{:06}", time.as_secs(), time.subsec_micros());
}

fn main() {
    let mut paths: Vec<_> = std::fs::read_dir(std::env::var("FILES").unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        for packet in pcarp::Capture::new(File::open(&path).unwrap()) {
            let time = packet.unwrap().timestamp.unwrap();
            print("pcarp", name, time.duration_since(UNIX_EPOCH).unwrap());
        }
        let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                print("pcap-file", name, packet.timestamp);
            }
        }
    }
}
RUST
cat "$work/seen" >>"$work/all"
# A line for each reader and file.
sed -E 's/(\.[0-9]{6})[0-9]*$/\1/; s/1800000000\.250000$/right/' "$work/all" |
  awk -F': ' '{ name = $1 ": " $2 } !(name in times) { names[++n] = name }
    { times[name] = times[name] " " $3 }
    END {
      for (i = 1; i <= n; i++) if (times[names[i]] ~ /[0-9]/) print names[i] ":" times[names[i]]
      print n, "in all"
    }' | LC_ALL=C sort >"$work/seen"
seen <<'SEEN'
40 in all
dpkt: 5 us, ns, of two: right 1800000000249.999756 1887436800.262144
gopacket: 3 of two: 1800000000.249823
gopacket: 5 us, ns, of two: right right 1800000000.249823
pcap-file: 1 us: 1800000.000250
pcap-file: 3 of two: 1887436.800262
pcap-file: 4 offset: 100000.000250
pcap-file: 5 us, ns, of two: 1800000.000250 right 1887436.800262
pcarp: 4 offset: 100000000.250000
python-pcapng: 4 offset: 100000000.250000
scapy: 4 offset: 100000000.250000
SEEN
