//! Holds published timers to their promises with `tickless-conformance`:
//! `cargo run --release -- [NAME]... [--json]`, in this folder. `--features foreign,glommio` adds
//! libev and libuv, which must be installed, and glommio, which needs io_uring.

#[expect(unsafe_code, reason = "the system's clock")]
mod clock;
mod suite;

use clap::Parser;
use conformance_peers::executors::{self, Sleeps};
#[cfg(feature = "foreign")]
use conformance_peers::foreign::{Libev, Libuv};
use conformance_peers::{others, tasks, wheels};
use suite::Queued;
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
        peer::<Queued<wheels::BitWheel>>(),
        peer::<Queued<wheels::HashWheel>>(),
        peer::<Queued<wheels::Nexus>>(),
        peer::<Queued<others::TimerQueue>>(),
        peer::<Queued<others::RingWheel>>(),
        peer::<Queued<others::MultiWheel>>(),
        peer::<Queued<others::PriorityQueue>>(),
        peer::<Queued<others::KeyedPriorityQueue>>(),
        peer::<Queued<others::Embassy>>(),
        peer::<Queued<tasks::DelayQueue>>(),
        peer::<Queued<others::DelayMap>>(),
        peer::<Queued<Sleeps<executors::Tokio>>>(),
        peer::<Queued<Sleeps<executors::Compio>>>(),
        peer::<Queued<Sleeps<executors::Monoio>>>(),
        peer::<Queued<Sleeps<executors::Smol>>>(),
        #[cfg(feature = "glommio")]
        peer::<Queued<Sleeps<executors::Glommio>>>(),
        peer::<Queued<others::Calloop>>(),
        #[cfg(feature = "foreign")]
        peer::<Queued<Libev>>(),
        #[cfg(feature = "foreign")]
        peer::<Queued<Libuv>>(),
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
