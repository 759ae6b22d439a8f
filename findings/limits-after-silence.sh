#!/usr/bin/env bash
# Streams limited to 100 KB/s whose source sends a byte, is silent for 6 s, and then has 2 MB. pv
# 1.6.20, cstream 4.0.0 (Debian) and throttle 1.0.3 (npm) save up what the silence has not used, and
# 600 KB pass at once; after 8 s it is 800. cstream with a negative limit, buffer 1.19,
# stream-throttle 0.1.3 and speed-limiter 1.0.2 save a second at most.
# Guessed before the run: all save a second at most.
. "$(dirname "$0")/lib.sh"
debian pv=1.6.20-1 cstream=4.0.0-1 buffer=1.19-12+b1
# passed NAME SECONDS: what comes on standard input until then.
cat >"$work/passed.py" <<'PYTHON'
import os
import sys
import time

start, passed = time.monotonic(), 0
while (part := os.read(0, 65536)) and time.monotonic() - start < 6.5:
    passed += len(part)
print(f"{sys.argv[1]}: {'more' if passed > 450_000 else 'less'} than 450 KB")
PYTHON
# after_silence NAME COMMAND...: what has passed half a second after the silence.
after_silence() {
  { head -c 1 /dev/zero && sleep 6 && head -c 2000000 /dev/zero; } 2>/dev/null |
    timeout 9 "${@:2}" 2>/dev/null | python3 "$work/passed.py" "$1" >"$work/$1.passed"
}
after_silence pv pv -q -L 100k &
after_silence cstream cstream -t 100k &
after_silence "negative cstream" cstream -t -100k &
after_silence buffer buffer -u 10000 -s 1k &
wait
cat "$work"/*.passed >"$work/all"
node throttle@1.0.3 stream-throttle@0.1.3 speed-limiter@1.0.2 <<'JS'
import { createRequire } from "node:module";
import { Readable } from "node:stream";

const require = createRequire(import.meta.url);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function* source() {
  yield Buffer.alloc(1);
  await sleep(6000);
  for (let part = 0; part < 200; part++) yield Buffer.alloc(10_000);
}
const limits = {
  "throttle": () => new (require("throttle"))(100_000),
  "stream-throttle": () => new (require("stream-throttle").Throttle)({ rate: 100_000 }),
  "speed-limiter": () =>
    new (require("speed-limiter").ThrottleGroup)({ rate: 100_000, enabled: true }).throttle(),
};
const passed = await Promise.all(Object.values(limits).map(async (limit) => {
  let passed = 0;
  Readable.from(source()).pipe(limit()).on("data", (part) => { passed += part.length; });
  await sleep(6500);
  return passed;
}));
Object.keys(limits).forEach((name, at) =>
  console.log(`${name} (JavaScript): ${passed[at] > 450_000 ? "more" : "less"} than 450 KB`));
process.exit();
JS
cat "$work/seen" >>"$work/all" && mv "$work/all" "$work/seen"
seen <<'SEEN'
buffer: less than 450 KB
cstream: more than 450 KB
negative cstream: less than 450 KB
pv: more than 450 KB
throttle (JavaScript): more than 450 KB
stream-throttle (JavaScript): less than 450 KB
speed-limiter (JavaScript): less than 450 KB
SEEN
