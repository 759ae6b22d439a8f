#!/usr/bin/env bash
# HdrHistogram in Rust (hdrhistogram 7.6.0), Python (hdrhistogram 0.10.8), Go (1.4.0) and
# JavaScript (hdr-histogram-js 3.0.1): the 99th percentile of one histogram is not the same. Rust
# and JavaScript round its rank up, Python and Go to the nearest: of 160 samples, two of them slow,
# the first two say slow and the others fast.
# Guessed before the run: the same, since they read each other's logs.
. "$(dirname "$0")/lib.sh"
rust 'hdrhistogram = "=7.6.0"' <<'RUST'
fn main() {
    let mut histogram = hdrhistogram::Histogram::<u64>::new_with_max(1_000_000, 3).unwrap();
    histogram.record_n(10, 158).unwrap();
    histogram.record_n(1_000, 2).unwrap();
    println!("Rust: {}", histogram.value_at_percentile(99.0));
}
RUST
mv "$work/seen" "$work/all"
python hdrhistogram==0.10.8 <<'PYTHON'
from hdrh.histogram import HdrHistogram

histogram = HdrHistogram(1, 1_000_000, 3)
histogram.record_value(10, 158)
histogram.record_value(1_000, 2)
print("Python:", histogram.get_value_at_percentile(99))
PYTHON
cat "$work/seen" >>"$work/all"
golang github.com/HdrHistogram/hdrhistogram-go@v1.4.0 <<'GO'
package main

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func main() {
	histogram := hdrhistogram.New(1, 1_000_000, 3)
	histogram.RecordValues(10, 158)
	histogram.RecordValues(1_000, 2)
	fmt.Println("Go:", histogram.ValueAtQuantile(99))
}
GO
cat "$work/seen" >>"$work/all"
node hdr-histogram-js@3.0.1 <<'JS'
import { build } from "hdr-histogram-js";
const histogram = build({ highestTrackableValue: 1_000_000, numberOfSignificantValueDigits: 3 });
histogram.recordValueWithCount(10, 158);
histogram.recordValueWithCount(1_000, 2);
console.log("JavaScript:", histogram.getValueAtPercentile(99));
JS
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
Rust: 1000
Python: 10
Go: 10
JavaScript: 1000
SEEN
