#!/usr/bin/env bash
# Quantiles of 99 calls of 1 ms and one of 1,000 ms. Four digests join what is equal, and draw a
# line from there to the slow call: for `Summary` of prom-client 15.1.3 and the tdigest 0.1.2 that
# it is built on (npm), tdigest 0.5.2.2 and pytdigest 0.1.4 (PyPI), the median is 11 ms and the 90th
# percentile 810. In fastdigest, crick, datasketches and DDSketch both are 1 ms, but the 99th is 11,
# 500, 1,000 or 1.
# Guessed before the run: the median is 1 ms in all, since a hundred values need no sketch.
. "$(dirname "$0")/lib.sh"
python tdigest==0.5.2.2 pytdigest==0.1.4 fastdigest==0.12.0 crick==0.0.8 datasketches==5.2.0 \
  ddsketch==3.0.1 <<'PYTHON'
import crick
import datasketches
import ddsketch
import fastdigest
import pytdigest
import tdigest

CALLS = [1.0] * 99 + [1000.0]


def filled(sketch, add):
    for call in CALLS:
        getattr(sketch, add)(call)
    return sketch


for name, quantile in {
    "tdigest": lambda q, d=filled(tdigest.TDigest(), "update"): d.percentile(100 * q),
    "pytdigest": filled(pytdigest.TDigest(), "update").inverse_cdf,
    "fastdigest": fastdigest.TDigest.from_values(CALLS).quantile,
    "crick": filled(crick.TDigest(), "add").quantile,
    "datasketches (t-digest)": filled(datasketches.tdigest_double(100), "update").get_quantile,
    "datasketches (KLL)": filled(datasketches.kll_floats_sketch(200), "update").get_quantile,
    "ddsketch": filled(ddsketch.DDSketch(), "add").get_quantile_value,
}.items():
    print(f"{name} (Python):", *(f"{float(quantile(q)):.0f}" for q in (0.5, 0.9, 0.99, 1)))
PYTHON
mv "$work/seen" "$work/all"
node prom-client@15.1.3 tdigest@0.1.2 @datadog/sketches-js@2.1.1 <<'JS'
import { createHistogram } from "node:perf_hooks";
import prom from "prom-client";
import tdigest from "tdigest";
import { DDSketch } from "@datadog/sketches-js";

const calls = [...Array(99).fill(1), 1000];
const quantiles = [0.5, 0.9, 0.99, 1];
const summary = new prom.Summary({ name: "call_ms", help: "-", percentiles: quantiles });
const [digest, sketch, hdr] = [new tdigest.TDigest(), new DDSketch(), createHistogram()];
for (const call of calls) {
  summary.observe(call);
  digest.push(call);
  sketch.accept(call);
  hdr.record(call);
}
const { values } = await summary.get();
const show = (name, values) => console.log(`${name}: ${values.map(Math.round).join(" ")}`);
show("prom-client (JavaScript)", values.slice(0, quantiles.length).map(({ value }) => value));
show("tdigest (JavaScript)", quantiles.map((q) => digest.percentile(q)));
show("@datadog/sketches-js (JavaScript)", quantiles.map((q) => sketch.getValueAtQuantile(q)));
show("Node's histogram (JavaScript)", quantiles.map((q) => hdr.percentile(100 * q)));
JS
cat "$work/seen" >>"$work/all" && mv "$work/all" "$work/seen"
seen <<'SEEN'
tdigest (Python): 11 810 990 1000
pytdigest (Python): 11 810 990 1000
fastdigest (Python): 1 1 11 1000
crick (Python): 1 1 500 1000
datasketches (t-digest) (Python): 1 1 1000 1000
datasketches (KLL) (Python): 1 1 1000 1000
ddsketch (Python): 1 1 1 1002
prom-client (JavaScript): 11 810 990 1000
tdigest (JavaScript): 11 810 990 1000
@datadog/sketches-js (JavaScript): 1 1 1 1002
Node's histogram (JavaScript): 1 1 1 1000
SEEN
