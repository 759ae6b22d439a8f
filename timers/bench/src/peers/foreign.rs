//! Peers in other languages: programs of `foreign/`. Each is a child process that takes one
//! sample on each request, so that it is measured in turn with the other contenders.
//!
//! A child returns the number of its timers that are pending or have fired, and the sum of its
//! deadlines. Both must equal those of the case here, which shows that the work was the same.

use crate::child::Running;
use crate::random::Random;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The work of a case, as the children name it.
pub type Kind = &'static str;

pub const PAIRS: Kind = "pairs";
pub const PUSH: Kind = "push";
pub const PUSH_EQUAL: Kind = "push_equal";
pub const EXPIRE: Kind = "expire";
pub const OWN: Kind = "own";
pub const CROSSED: Kind = "crossed";

pub struct Foreign {
    pub name: &'static str,
    pub program: &'static str,
    kinds: &'static [Kind],
    /// For its expiry: how time passes, and whose CPU time is counted.
    pub how: &'static str,
    /// The row in which its cancel by another thread waits for a callback that runs.
    pub crossed_name: &'static str,
}

const ONE_THREAD: &[Kind] = &[PAIRS, PUSH, PUSH_EQUAL, EXPIRE];
const ALL: &[Kind] = &[PAIRS, PUSH, PUSH_EQUAL, EXPIRE, OWN, CROSSED];
const EQUAL_ONLY: &[Kind] = &[PAIRS, PUSH_EQUAL];
/// Its expiry is that of the contenders in Rust.
const FROM_C: &[Kind] = &[PAIRS, PUSH, PUSH_EQUAL, OWN, CROSSED];
const LOCAL_FROM_C: &[Kind] = &[PAIRS, PUSH, PUSH_EQUAL];

const CAUGHT_UP: &str = "all due when the loop looks, one thread";

const fn peer(
    name: &'static str,
    program: &'static str,
    kinds: &'static [Kind],
    how: &'static str,
) -> Foreign {
    Foreign { name, program, kinds, how, crossed_name: name }
}

pub const PEERS: &[Foreign] = &[
    Foreign {
        crossed_name: "**Timeout** from C, `cancel_sync` waits",
        ..peer("**Timeout** from C, `start_from(now, d)`", "tickless", FROM_C, "")
    },
    peer("**LocalTimers** from C", "tickless_local", LOCAL_FROM_C, ""),
    peer("libev (C)", "libev", ONE_THREAD, CAUGHT_UP),
    Foreign {
        crossed_name: "libevent (C), `event_del` waits",
        ..peer("libevent (C)", "libevent", ALL, CAUGHT_UP)
    },
    peer("libevent (C), common timeout", "libevent_common", EQUAL_ONLY, CAUGHT_UP),
    peer("Boost.Asio `steady_timer` (C++)", "asio", ALL, CAUGHT_UP),
    Foreign {
        crossed_name: "DPDK (C), `rte_timer_stop_sync` waits",
        ..peer("DPDK `rte_timer` (C)", "dpdk", ALL, CAUGHT_UP)
    },
    peer("Go `AfterFunc`", "go", ALL, super::LIVE),
    peer("Netty `HashedWheelTimer` (Java)", "netty", ALL, super::LIVE),
    peer("Agrona `DeadlineTimerWheel` (Java)", "agrona", ONE_THREAD, super::STEPS),
];

pub fn able(
    folder: Option<&Path>,
    kind: Kind,
) -> impl Iterator<Item = (&'static Foreign, PathBuf)> {
    let there = folder.map(|folder| {
        PEERS.iter().filter(move |peer| peer.kinds.contains(&kind)).filter_map(|peer| {
            let program = folder.join(peer.program);
            program.exists().then_some((peer, program))
        })
    });
    there.into_iter().flatten().collect::<Vec<_>>().into_iter()
}

/// The peers that could not be built, with the reasons that `ci/benches.sh foreign` wrote.
pub fn missing(folder: Option<&Path>) -> Vec<String> {
    let Some(folder) = folder else { return Vec::new() };
    let reason = |peer: &Foreign| {
        let reason = std::fs::read_to_string(folder.join(format!("{}.missing", peer.program)));
        Some(format!("{}: {}", peer.name, reason.ok()?.trim()))
    };
    PEERS.iter().filter_map(reason).collect()
}

/// The versions that were built, a line each, written by that script.
pub fn versions(folder: Option<&Path>) -> Vec<String> {
    let text = folder.and_then(|folder| std::fs::read_to_string(folder.join("versions")).ok());
    text.unwrap_or_default().lines().map(str::to_string).collect()
}

#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub ns: f64,
    pub count: usize,
    pub sum: u64,
}

/// Takes a sample of a child.
fn sample(running: &mut Running) -> Answer {
    let line = running.ask();
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let answer = (word().parse().ok(), word().parse().ok(), word().parse().ok());
    let (Some(ns), Some(count), Some(sum)) = answer else {
        panic!("not an answer: {line:?}");
    };
    Answer { ns, count, sum }
}

pub fn sum(after: impl Iterator<Item = Duration>) -> u64 {
    after.fold(0, |sum: u64, after| sum.wrapping_add(after.as_nanos() as u64))
}

/// Starts a child when its first sample is taken, so that it may use the CPUs that are measured.
pub fn lazily(
    program: PathBuf,
    kind: Kind,
    pending: usize,
    operations: usize,
) -> impl FnMut() -> Answer {
    let arguments = [kind.to_string(), pending.to_string(), operations.to_string()];
    let mut running = None;
    move || sample(running.get_or_insert_with(|| Running::start(&program, &arguments)))
}

pub fn within_a_second(count: usize) -> Vec<Duration> {
    let mut random = Random::new();
    (0..count).map(|_| Duration::from_nanos(random.below(1_000_000_000))).collect()
}
