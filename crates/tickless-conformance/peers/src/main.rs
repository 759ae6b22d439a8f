//! Holds published timers to their promises with `tickless-conformance`:
//! `cargo run --release -- [NAME]... [--json]`, in this folder.
//!
//! Timers that read a clock which cannot be set, such as async-io's, are not here.

mod heaps;
mod tasks;
mod wheels;

use clap::Parser;
use tickless_conformance::{CountingAllocator, Effort, Report, Timers, check};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Holds published timers to their promises.
#[derive(Parser)]
struct Arguments {
    /// Only timers whose names contain one of these
    names: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Published timers: the name, and a function that checks them.
type Peer = (&'static str, fn(Effort) -> Report);

fn peer<T: Timers + 'static>() -> Peer {
    (T::NAME, check::<T>)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { names, json } = Arguments::parse();
    let peers = [
        peer::<wheels::BitWheel>(),
        peer::<wheels::HashWheel>(),
        peer::<wheels::Nexus>(),
        peer::<wheels::TimerQueue>(),
        peer::<wheels::RingWheel>(),
        peer::<wheels::MultiWheel>(),
        peer::<heaps::PriorityQueue>(),
        peer::<heaps::KeyedPriorityQueue>(),
        peer::<heaps::Embassy>(),
        peer::<tasks::TokioSleep>(),
        peer::<tasks::DelayQueue>(),
        peer::<tasks::DelayMap>(),
    ];
    // Panics are results here.
    std::panic::set_hook(Box::new(|_| {}));
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let reports = peers.into_iter().filter(|(name, _)| is_wanted(name));
    let reports = reports.map(|(_, check)| check(Effort::default()));
    if json {
        println!("{}", serde_json::to_string_pretty(&reports.collect::<Vec<_>>())?);
    } else {
        reports.for_each(|report| println!("{report}\n"));
    }
    Ok(())
}
