#!/usr/bin/env bash
# Clients of NTP, and a server whose answers are valid by RFC 5905. Asked are: a server that is
# right; one that says that it is not synchronised (leap indicator 3, stratum 0); one that says to
# ask less often (a kiss of death, "RATE"); one in February 2036, after the seconds of NTP began
# again at 0. ntplib and three clients of npm return a time from the second and the third, and the
# year 1900 from the last.
# Guessed before the run: the second and third are errors, and the last is in 2036.
. "$(dirname "$0")/lib.sh"
# A server on ports of the loopback: it answers by the port that was asked.
cat >"$work/server.py" <<'PYTHON'
import select
import socket
import struct
import sys
import time

NOW = time.time() + 2_208_988_800
ERA_1 = 1_000_000  # 18 February 2036
GOOD = b"\x7f\0\0\1"
KINDS = [(0, 2, GOOD, NOW), (3, 0, b"INIT", NOW), (0, 0, b"RATE", NOW), (0, 2, GOOD, ERA_1)]
sockets = []
for _ in KINDS:
    sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    sockets[-1].bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets), flush=True)
end = time.monotonic() + 300
while time.monotonic() < end:
    for ready in select.select(sockets, [], [], 1)[0]:
        request, peer = ready.recvfrom(1000)
        leap, stratum, reference, now = KINDS[sockets.index(ready)]
        stamp = struct.pack("!Q", int(now * 2**32))
        first = leap << 6 | request[0] & 0x38 | 4
        answer = struct.pack("!BBbbII4s", first, stratum, 6, -20, 0, 0, reference)
        ready.sendto(answer + stamp + request[40:48] + stamp + stamp, peer)
PYTHON
/usr/bin/env python3 "$work/server.py" >"$work/ports" &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
until [ -s "$work/ports" ]; do sleep 0.05; done
read -ra ports <"$work/ports"
export PORTS="${ports[*]}"
python ntplib==0.4.0 <<'PYTHON'
import datetime
import os

import ntplib

for port in os.environ["PORTS"].split():
    try:
        seconds = ntplib.NTPClient().request("127.0.0.1", version=4, port=int(port)).tx_time
        epoch = datetime.datetime(1970, 1, 1)
        print("ntplib: the year", (epoch + datetime.timedelta(seconds=seconds)).year)
    except Exception as error:
        print("ntplib: an error:", error)
PYTHON
mv "$work/seen" "$work/all"
golang github.com/beevik/ntp@v1.6.0 <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/beevik/ntp"
)

func main() {
	for _, port := range strings.Fields(os.Getenv("PORTS")) {
		now, err := ntp.Time("127.0.0.1:" + port)
		if err != nil {
			fmt.Println("beevik/ntp: an error:", err)
		} else {
			fmt.Println("beevik/ntp: the year", now.Year())
		}
	}
}
GO
cat "$work/seen" >>"$work/all"
NODE_OPTIONS=--no-deprecation node ntp-client@0.5.3 @hapi/sntp@4.0.0 ntp-time@2.1.1 <<'JS'
import ntpClient from "ntp-client";
import Sntp from "@hapi/sntp";
import ntpTime from "ntp-time";

const host = "127.0.0.1";
const clients = {
  "ntp-client": (port) => new Promise((done, failed) =>
    ntpClient.getNetworkTime(host, port, (error, date) => error ? failed(error) : done(date))),
  "@hapi/sntp": async (port) => new Date((await Sntp.time({ host, port })).transmitTimestamp),
  "ntp-time": async (port) => (await new ntpTime.Client(host, port).syncTime()).time,
};
for (const [name, ask] of Object.entries(clients)) {
  for (const port of process.env.PORTS.split(" ").map(Number)) {
    try {
      console.log(`${name}: the year`, (await ask(port)).getUTCFullYear());
    } catch (error) {
      console.log(`${name}: an error`, error.message ?? error);
    }
  }
}
process.exit();
JS
cat "$work/seen" >>"$work/all"
rust 'rsntp = { version = "=4.1.2", default-features = false }' <<'RUST'
fn main() {
    for port in std::env::var("PORTS").unwrap().split(' ') {
        let client = rsntp::SntpClient::new();
        match client.synchronize(format!("127.0.0.1:{port}")) {
            Ok(result) => {
                let since_1970 = result.datetime().unix_timestamp().unwrap();
                println!("rsntp: the year {}", 1970 + since_1970.as_secs() / 31_556_952);
            }
            Err(error) => println!("rsntp: an error: {error}"),
        }
    }
}
RUST
cat "$work/seen" >>"$work/all"
# The years of this server and of the next two are today's.
sed "s/the year $(date -u +%Y)/now/; s/: an error.*/: an error/" "$work/all" |
  awk -F': ' '!lines[$1] { names[++n] = $1 } { lines[$1] = lines[$1] ", " $2 }
    END { for (i = 1; i <= n; i++) print names[i] ": " substr(lines[names[i]], 3) }' >"$work/seen"
seen <<'SEEN'
ntplib: now, now, now, the year 1900
beevik/ntp: now, an error, an error, the year 2036
ntp-client: now, now, now, the year 1900
@hapi/sntp: now, now, now, the year 1900
ntp-time: now, now, now, the year 1900
rsntp: now, an error, an error, the year 2036
SEEN
