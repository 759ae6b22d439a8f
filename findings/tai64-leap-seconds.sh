#!/usr/bin/env bash
# Labels in TAI64 or TAI64N of 2027-01-15 08:00:00 UTC, and that label read. daemontools 0.76 and
# tai64converter 0.0.1 add 10 s, which was right in 1972; s6 2.11.3 and the package tai64 1.0.0 of
# npm add 37. Each writes and reads alike, so a log of one is 27 s off in the other. The crate tai64
# 4.1.0 does both: `from_unix` and `to_unix` add 10, conversions from and to `SystemTime` 37.
# Guessed before the run: the tools of Debian agree; a library or two forgets the leap seconds.
. "$(dirname "$0")/lib.sh"
debian daemontools=1:0.76-8.1 s6=2.11.3.2-1 libs6-2.11=2.11.3.2-1 libexecline2.9=2.9.3.0-1 \
  libskarnet2.13=2.13.1.1-1
label=400000006b49d20a
{
  for tool in tai64n s6-tai64n; do
    before=$(date +%s)
    stamp=$(echo line | "$tool")
    ahead=$((16#${stamp:1:16} - 16#4000000000000000 - before))
    # The clock may have gone on by some seconds.
    echo "$tool adds $((ahead < 30 ? 10 : 37))"
  done
  for tool in tai64nlocal s6-tai64nlocal; do
    echo "$tool: $(echo "@${label}00000000 line" | TZ=UTC "$tool" | cut -c 12-19)"
  done
} >"$work/all"
python tai64converter==0.0.1 <<PYTHON
from tai64converter import Tai64Converter

print("tai64converter:", Tai64Converter().decode("@${label}00000000").time())
PYTHON
cat "$work/seen" >>"$work/all"
node tai64@1.0.0 <<JS
import tai64 from "tai64";

const { TAI64 } = tai64;
const seconds = Number("0x" + TAI64.fromUnix(1.8e9).toHexString().slice(8));
console.log("npm tai64 adds", seconds - 1.8e9);
const date = new Date(Number(TAI64.fromHexString("$label").toUnix()) * 1000);
console.log("npm tai64:", date.toISOString().slice(11, 19));
JS
cat "$work/seen" >>"$work/all"
rust 'tai64 = "=4.1.0"' <<RUST
use std::time::{Duration, SystemTime};
use tai64::{Tai64, Tai64N};

fn main() {
    let (unix, zero) = (1_800_000_000, 1 << 62);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix);
    println!("crate tai64, from_unix adds {}", Tai64::from_unix(unix as i64).0 - zero - unix);
    println!("crate tai64, from a SystemTime adds {}", Tai64N::from(time).0.0 - zero - unix);
    let label = Tai64(0x$label);
    let before = time.duration_since(Tai64N(label, 0).to_system_time()).unwrap();
    println!("crate tai64, to_unix: {} s before", unix as i64 - label.to_unix());
    println!("crate tai64, to_system_time: {} s before", before.as_secs());
}
RUST
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
tai64n adds 10
s6-tai64n adds 37
tai64nlocal: 08:00:00
s6-tai64nlocal: 07:59:33
tai64converter: 08:00:00
npm tai64 adds 37
npm tai64: 07:59:33
crate tai64, from_unix adds 10
crate tai64, from a SystemTime adds 37
crate tai64, to_unix: 0 s before
crate tai64, to_system_time: 27 s before
SEEN
