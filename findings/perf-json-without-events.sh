#!/usr/bin/env bash
# perf 6.1.176 (Debian bookworm): `perf data convert --to-json` of a recording of tracepoints says
# of each sample when, where and in which thread it was taken, but neither the name of its event nor
# the event's fields, though the same program prints both as text. So a start of a timer cannot be
# told from its expiry.
# Guessed before the run: the name, and an object with the fields.
# The recording is perf's own, of Linux 6.12.
. "$(dirname "$0")/lib.sh"
recording=$(dirname "$0")/../lab/tickless-trace/tests/data/perf-6.12.data.gz
debian linux-perf=6.1.176-1
zcat "$recording" >"$work/perf.data"
{
  perf script -i "$work/perf.data" -F event,trace 2>/dev/null | awk '
    { names[$1]; if (/=/) fields++ } END { print "text:", length(names), "events,",
      fields, "of", NR, "samples with fields" }'
  perf data convert --to-json "$work/json" -i "$work/perf.data" 2>/dev/null
  python3 - "$work/json" <<'PYTHON'
import json, sys
samples = json.load(open(sys.argv[1]))["samples"]
keys = sorted({key for sample in samples for key in sample})
print("json:", len(samples), "samples,", *keys)
PYTHON
} >"$work/seen"
seen <<'SEEN'
text: 14 events, 1393 of 1393 samples with fields
json: 1393 samples, callchain comm cpu pid tid timestamp
SEEN
