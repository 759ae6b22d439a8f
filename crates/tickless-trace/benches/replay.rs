//! The cost of replaying the committed traces, which are recorded mixes of operations.
//! `cargo bench -p tickless-trace --bench replay`. Each figure is one trace under one policy, with
//! a base for each CPU; it includes the conversion of events to operations. The traces are read
//! once, before the measurement. Without `--bench` the smallest trace is replayed once, as a test.

// It fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use std::path::Path;
use tickless_trace::read::Trace;
use tickless_trace::replay::{Inference, ReplayPolicy, summarise};

fn main() {
    divan::main();
}

fn traces() -> &'static [&'static str] {
    if std::env::args().any(|arg| arg == "--bench") {
        &["pipe-one-cpu", "pipe-two-cpus", "two-groups-aligned", "nginx"]
    } else {
        &["pipe-one-cpu"]
    }
}

fn read(name: &str) -> Trace {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    Trace::read(&folder.join(format!("{name}.txt.gz"))).expect("a committed trace can be read")
}

fn replay(bencher: Bencher, name: &str, policy: ReplayPolicy) {
    let trace = read(name);
    let summary = summarise(&trace, &[policy], Inference::On);
    let operations = &summary.operations;
    let count = operations.start + operations.cancel + operations.expire;
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let summary = summarise(&trace, &[policy], Inference::On);
        let early: u64 = summary.policies.iter().map(|outcome| outcome.early).sum();
        assert_eq!(early, 0, "nothing fires early");
    });
}

#[divan::bench(args = traces())]
fn lazy(bencher: Bencher, name: &str) {
    replay(bencher, name, ReplayPolicy::Lazy);
}

#[divan::bench(args = traces())]
fn restart_aware(bencher: Bencher, name: &str) {
    replay(bencher, name, ReplayPolicy::RestartAware);
}
