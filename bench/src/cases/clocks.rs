//! The cost of reading a clock, which is higher than that of arming a timer: hence `start_from`.

use super::{Choice, contender};
use crate::effort::Effort;
use crate::peers::timeout::TIMERS;
use crate::report::Table;
use crate::sample::{Figure, Stopwatch, interleave};
use std::hint::black_box;
use std::time::Instant;

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "The first is the unit of all ratios.";
    let mut table = Table::new("clocks", "clock reads", about);
    let column = table.column("ns");
    let mut contenders = vec![
        contender("**`Timers::now`**", || per_call(effort, || black_box(TIMERS.now()).as_nanos())),
        contender("`Instant::now`", || {
            let start = Instant::now();
            per_call(effort, || black_box(Instant::now()).duration_since(start).as_nanos() as u64)
        }),
    ];
    #[cfg(target_arch = "x86_64")]
    contenders.insert(
        0,
        contender("`rdtsc`", || {
            // SAFETY: every x86-64 CPU has the instruction.
            per_call(effort, || black_box(unsafe { core::arch::x86_64::_rdtsc() }))
        }),
    );
    contenders.retain(|contender| choice.wants(contender.name));
    let unit = interleave(contenders, effort.repetitions);
    table.put("(uncontended atomic add)", column, "ns", Some(crate::sample::unit()));
    for (name, samples) in unit {
        table.put(name, column, "ns", Figure::of(samples));
    }
    vec![table]
}

fn per_call(effort: &Effort, mut read: impl FnMut() -> u64) -> f64 {
    let mut last = 0;
    let watch = Stopwatch::start();
    for _ in 0..effort.operations {
        let now = read();
        assert!(now >= last, "a clock went back");
        last = now;
    }
    watch.ns_per(effort.operations)
}
