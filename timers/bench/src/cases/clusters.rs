//! W14: the longest calls where a great many timers have one deadline.
//!
//! A call takes longer if something interrupts it. So each run makes the same calls, and a call
//! counts with its shortest time of all runs.

use super::{Choice, short};
use crate::allocator::bytes_in_use;
use crate::effort::Effort;
use crate::peers::local::BATCH;
use crate::random::Random;
use crate::report::Table;
use crate::sample::{Figure, in_turn};
use std::time::{Duration, Instant};
use tickless::callback::Cancel;
use tickless::local::Clock;
use tickless::{LocalTimers, Timeout, Timers, VirtualTime};

const START: tickless::time::Instant = tickless::time::Instant::from_secs(1);
const TICK: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

pub const TOGETHER: &str = "**LocalTimers**, all due in one tick";
const APART: &str = "**LocalTimers**, 64 due in each tick";
const UNBOUNDED: &str = "**LocalTimers**, all due in one tick, one call";
const LOCAL: &str = "**LocalTimers**";
pub const VIRTUAL: &str = "**Timeout**, in VirtualTime";

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    if choice.wants(LOCAL) || choice.wants(VIRTUAL) {
        vec![one_tick(effort), one_deadline(effort)]
    } else {
        Vec::new()
    }
}

fn one_tick(effort: &Effort) -> Table {
    let count = effort.bulk;
    let title = format!("{} timers fire in a loop, at most {BATCH} in a call", short(count));
    let about = "`advance_at_most`, and two microseconds of other work between two calls. The last \
                 timer: how long after the beginning of the loop it fires.";
    let mut table = Table::new("W14", &title, about);
    let cases = vec![
        (TOGETHER, (Duration::ZERO, BATCH)),
        (APART, (TICK, BATCH)),
        (UNBOUNDED, (Duration::ZERO, usize::MAX)),
    ];
    let fire = |_, case: &mut (Duration, usize)| fire_in_loop(count, case.0, case.1);
    let rows = in_turn(cases, effort.repetitions, fire);
    let calls: Vec<Vec<u64>> = rows.iter().map(|(_, runs)| shortest(runs)).collect();
    assert_eq!(calls[0].len(), count.div_ceil(BATCH), "each call fires as many as it may");
    for (column, per_10_000) in [("p50", 5_000), ("p99.99", 9_999), ("max", 10_000)] {
        let at = |calls: &[u64]| calls[(calls.len() * per_10_000 / 10_000).min(calls.len() - 1)];
        let (own, over) = (table.column(column), table.column(&format!("{column} / apart")));
        for ((name, _), calls_of_row) in rows.iter().zip(&calls) {
            let ns = at(calls_of_row) as f64;
            table.put(name, own, "ns", Figure::of(vec![ns]));
            let ratio = Figure::of(vec![ns / at(&calls[1]) as f64]);
            table.put(name, over, "x", ratio.filter(|_| *name == TOGETHER));
        }
    }
    let last = table.column("the last timer");
    for (name, runs) in rows.iter().filter(|(name, _)| *name != APART) {
        let us = runs.iter().map(|(_, last)| last.as_secs_f64() * 1e6).collect();
        table.put(name, last, "us", Figure::of(us));
    }
    table
}

/// Returns how long each call took that has fired timers, in ns, and when the last timer fired.
fn fire_in_loop(count: usize, apart: Duration, budget: usize) -> (Vec<u64>, Duration) {
    let mut timers = LocalTimers::new(Clock::manual(START));
    for nth in 0..count {
        let key = timers.insert(0_u64).expect("room for one more");
        let due = START + TICK + apart * (nth / BATCH) as u32;
        timers.start_at(key, due).expect("just inserted");
    }
    let (mut calls, mut fired, mut now) = (Vec::new(), 0, START);
    let begun = Instant::now();
    while fired < count {
        now += TICK;
        let call = Instant::now();
        let in_call = timers.advance_at_most(now, budget, |timers, key| {
            if let Some(value) = timers.get_mut(key) {
                *value += 1;
            }
        });
        let took = call.elapsed();
        assert!(in_call <= budget, "{in_call} timers in a call");
        fired += in_call;
        if in_call > 0 {
            calls.push(took.as_nanos() as u64);
        }
        while fired < count && call.elapsed() < took + Duration::from_micros(2) {
            std::hint::spin_loop();
        }
    }
    let last = begun.elapsed();
    assert_eq!((fired, timers.pending()), (count, 0));
    (calls, last)
}

/// Returns the shortest time of each call, in order of length.
fn shortest(runs: &[(Vec<u64>, Duration)]) -> Vec<u64> {
    let mut shortest = runs[0].0.clone();
    for (calls, _) in runs {
        assert_eq!(calls.len(), shortest.len(), "each run makes the same calls");
        shortest.iter_mut().zip(calls).for_each(|(least, &ns)| *least = ns.min(*least));
    }
    shortest.sort_unstable();
    shortest
}

/// What is done to timers which are all armed for one deadline, two seconds ahead.
#[derive(Clone, Copy)]
enum Call {
    Start(usize),
    Cancel(usize),
    /// Moves the time on by a second; not timed.
    Advance,
}

type Crowd = Box<dyn FnMut(Call)>;
type MakeCrowd = fn(usize) -> Crowd;

fn local(count: usize) -> Crowd {
    let mut timers = LocalTimers::new(Clock::manual(START));
    let keys: Vec<_> = (0..count).map(|_| timers.insert(()).expect("room for one more")).collect();
    Box::new(move |call| match call {
        Call::Start(nth) => timers.start(keys[nth], 2 * SECOND).expect("a timer of this set"),
        Call::Cancel(nth) => assert_eq!(timers.cancel(keys[nth]), Ok(true)),
        Call::Advance => assert_eq!(timers.advance(timers.now() + SECOND, |_, _| {}), 0),
    })
}

fn shared(count: usize) -> Crowd {
    let time = VirtualTime::with_builder(Timers::builder().bases(1).coarse_like_real(), START);
    let timeouts: Vec<Timeout> = (0..count).map(|_| time.timers().timeout(|_| {})).collect();
    Box::new(move |call| match call {
        Call::Start(nth) => _ = timeouts[nth].start(2 * SECOND).expect("not shut down"),
        Call::Cancel(nth) => assert_eq!(timeouts[nth].cancel(), Cancel::Pending),
        Call::Advance => time.advance(SECOND),
    })
}

fn one_deadline(effort: &Effort) -> Table {
    let count = effort.bulk;
    let title = format!("{} timers of one deadline", short(count));
    let about = "All are armed and cancelled in reverse order, armed and cancelled in random \
                 order, armed, and pushed out each second for a minute. A slow call took more than \
                 50 us, in each run. After the first second of the minute, nothing is allocated.";
    let mut table = Table::new("W14 deadline", &title, about);
    let crowds: Vec<(_, MakeCrowd)> = vec![(LOCAL, local), (VIRTUAL, shared)];
    let rows = in_turn(crowds, 2, |_, crowd| one_crowd(crowd(count), count));
    let columns = ["ns per call", "slow calls"].map(|column| table.column(column));
    for (name, runs) in &rows {
        let ns = runs.iter().map(|(_, ns)| *ns).collect();
        table.put(name, columns[0], "ns", Figure::of(ns));
        let in_each = |call: &&usize| runs.iter().all(|(slow, _)| slow.contains(call));
        let slow = runs[0].0.iter().filter(in_each).count();
        table.put(name, columns[1], "", Figure::of(vec![slow as f64]));
    }
    table
}

/// Returns the numbers of the slow calls, and the mean duration of a call in ns.
fn one_crowd(mut crowd: Crowd, count: usize) -> (Vec<usize>, f64) {
    let mut random = Random::new();
    let mut shuffled: Vec<usize> = (0..count).collect();
    (1..count).for_each(|nth| shuffled.swap(nth, random.below(nth as u64 + 1) as usize));
    let reversed: Vec<usize> = (0..count).rev().collect();
    let (mut slow, mut calls, mut total) = (Vec::with_capacity(1 << 16), 0, Duration::ZERO);
    let mut call_each = |order: &mut dyn Iterator<Item = Call>| {
        let mut last = Instant::now();
        for call in order {
            crowd(call);
            let now = Instant::now();
            let took = if let Call::Advance = call { Duration::ZERO } else { now - last };
            (last, calls, total) = (now, calls + 1, total + took);
            if took > Duration::from_micros(50) && slow.len() < slow.capacity() {
                slow.push(calls);
            }
        }
    };
    for order in [reversed, shuffled] {
        call_each(&mut (0..count).map(Call::Start));
        call_each(&mut order.into_iter().map(Call::Cancel));
    }
    let mut before = 0;
    for second in 0..60 {
        call_each(&mut (0..count).map(Call::Start).chain([Call::Advance]));
        if second == 1 {
            before = bytes_in_use();
        }
    }
    assert_eq!(bytes_in_use(), before, "memory is flat");
    // None has fired: a cancel asserts that its timer is pending.
    call_each(&mut (0..count).map(Call::Cancel));
    (slow, total.as_nanos() as f64 / calls as f64)
}
