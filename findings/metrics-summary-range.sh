#!/usr/bin/env bash
# metrics-exporter-prometheus 0.18.3 (Rust): its summaries, which a histogram is unless buckets are
# set, tell apart only what is within a factor of 700 of the largest value. One call of 1 s lifts
# the median of 99 calls of 100 us to 1.4 ms, and one of 10 s to 14 ms; every quantile but the first
# and the last is the same. With a slowest call of 60 ms, all are right to 1 in 10,000.
# Guessed before the run: the median is right in all, to the 1 in 10,000 that is set.
. "$(dirname "$0")/lib.sh"
rust 'metrics = "=0.24.6"' \
  'metrics-exporter-prometheus = { version = "=0.18.3", default-features = false }' <<'RUST'
use metrics_exporter_prometheus::PrometheusBuilder;

fn main() {
    for slowest in [0.06, 1.0, 10.0] {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            for seconds in std::iter::repeat_n(0.0001, 99).chain([slowest]) {
                metrics::histogram!("call_seconds").record(seconds);
            }
        });
        println!("99 of 0.0001 s, one of {slowest} s");
        for line in recorder.handle().render().lines() {
            if let Some((name, value)) = line.split_once(' ')
                && let Some(quantile) = name.strip_prefix("call_seconds{quantile=")
            {
                let value: f64 = value.parse().unwrap();
                println!("  {}: {value:.5}", quantile.trim_matches(['"', '}']));
            }
        }
    }
}
RUST
seen <<'SEEN'
99 of 0.0001 s, one of 0.06 s
  0: 0.00010
  0.5: 0.00010
  0.9: 0.00010
  0.95: 0.00010
  0.99: 0.00010
  0.999: 0.00010
  1: 0.06000
99 of 0.0001 s, one of 1 s
  0: 0.00010
  0.5: 0.00143
  0.9: 0.00143
  0.95: 0.00143
  0.99: 0.00143
  0.999: 0.00143
  1: 1.00000
99 of 0.0001 s, one of 10 s
  0: 0.00010
  0.5: 0.01425
  0.9: 0.01425
  0.95: 0.01425
  0.99: 0.01425
  0.999: 0.01425
  1: 10.00000
SEEN
