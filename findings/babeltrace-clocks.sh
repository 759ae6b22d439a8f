#!/usr/bin/env bash
# babeltrace 1.5.11 and babeltrace2 2.0.4 (Debian bookworm), when a clock is moved by `--clock-
# offset` so that an event of interest is at 0: of the second before it, babeltrace prints seconds
# near 2^64, and babeltrace2 dates without their sign after the first line, so that 0.25 s before
# looks like 0.25 s after, and times go back. Each has the other form right. And both multiply a
# clock that is not of 1 GHz in floating point: four cycles of a counter of 3 GHz that has run for
# a year are at one nanosecond, 4 ns early, and in the second before.
# Guessed before the run: both print -0.25, and both compute in integers.
. "$(dirname "$0")/lib.sh"
debian babeltrace=1.5.11-1+b2 libbabeltrace1=1.5.11-1+b2 libpopt0 babeltrace2=2.0.4-1+b6 \
  libbabeltrace2-0=2.0.4-1+b6
BABELTRACE_PLUGIN_PATH=$(find "$work" -type d -name plugins)
export BABELTRACE_PLUGIN_PATH
/usr/bin/env python3 - "$work" <<'PYTHON'
import os
import struct
import sys


def make(name, frequency, offset_s, values):
    os.mkdir(f"{sys.argv[1]}/{name}")
    with open(f"{sys.argv[1]}/{name}/metadata", "w") as metadata:
        metadata.write(f"""/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
clock {{ name = c; freq = {frequency}; offset_s = {offset_s}; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.c.value; }} := ts_t;
trace {{
    major = 1; minor = 8; byte_order = le;
    packet.header := struct {{ uint32_t magic; uint32_t stream_id; }};
}};
stream {{
    id = 0;
    packet.context := struct {{
        ts_t timestamp_begin; ts_t timestamp_end; uint64_t content_size; uint64_t packet_size;
    }};
    event.header := struct {{ uint32_t id; ts_t timestamp; }};
}};
event {{ name = e; id = 0; stream_id = 0; fields := struct {{ uint32_t n; }}; }};
""")
    events = b"".join(struct.pack("<IQI", 0, value, n) for n, value in enumerate(values))
    bits = 8 * (40 + len(events))
    head = struct.pack("<IIQQQQ", 0xC1FC1FC1, 0, values[0], values[-1], bits, bits)
    with open(f"{sys.argv[1]}/{name}/stream", "wb") as stream:
        stream.write(head + events)


make("second", 10**9, 1_700_000_000, [t * 10**7 for t in (925, 975, 1000, 1025)])
# Four cycles of a counter of 3 GHz that has run for a year: 0.33 ns, 0.67 ns, 1 ns and 1.33 ns
# after a whole second.
year = 365 * 24 * 3600 * 3 * 10**9
make("counter", 3 * 10**9, 1_700_000_000, [year + n for n in (1, 2, 3, 4)])
PYTHON
read_with() {
  echo "$1 ${*:2:$#-2}"
  "$1" --no-delta "${@:2}" | sed 's/] .*//; s/\[ */  /'
}
for reader in babeltrace babeltrace2; do
  read_with $reader --clock-gmt --clock-offset=-1700000010 "$work/second"
  read_with $reader --clock-seconds --clock-offset=-1700000010 "$work/second"
  read_with $reader --clock-seconds "$work/counter"
done >"$work/seen" 2>/dev/null
seen <<'SEEN'
babeltrace --clock-gmt --clock-offset=-1700000010
  23:59:59.250000000
  23:59:59.750000000
  00:00:00.000000000
  00:00:00.250000000
babeltrace --clock-seconds --clock-offset=-1700000010
  18446744073709551615.250000000
  18446744073709551615.750000000
  0.000000000
  0.250000000
babeltrace --clock-seconds
  1731535999.999999996
  1731535999.999999996
  1731535999.999999996
  1731535999.999999996
babeltrace2 --clock-gmt --clock-offset=-1700000010
  -0.750000000
  00:00:00.250000000
  00:00:00.000000000
  00:00:00.250000000
babeltrace2 --clock-seconds --clock-offset=-1700000010
  -0.750000000
  -0.250000000
  0.000000000
  0.250000000
babeltrace2 --clock-seconds
  1731535999.999999996
  1731535999.999999996
  1731535999.999999996
  1731535999.999999996
SEEN
