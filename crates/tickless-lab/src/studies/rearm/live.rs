//! The study of lazy rearming on this machine.
//!
//! Two threads wake each other. Each arms a timer, its *guard*, before every wait and cancels it
//! after the wait. The main result is a count of writes to the event device. With lazy rearming the
//! guards never program the device: it stays armed for the first deadline, and every later deadline
//! is later than that. With eager rearming both threads program it when a guard is armed and again
//! when it is removed. The difference in time depends on the cost of a device write. For our driver
//! thread, a write is a system call that wakes the thread.

use super::ping_pong::{Guard, Plan, Taken};
use crate::LabError;
use crate::measure::{self, Spread, interleave};
use crate::progress::Progress;
use crate::studies::plot::{Bar, Plot, Shape, Side};
use crate::studies::result::{self as columns, Column};
use crate::studies::{Band, Cell, Request, StudyResult};
use crate::text::figure;
use std::time::Duration;
use tickless::driver::Device;
use tickless::policy::Policy;

const POLICIES: [(&str, Option<Policy>); 4] = [
    ("lazy", Some(Policy::Lazy)),
    ("eager", Some(Policy::Eager)),
    ("restart_aware", Some(Policy::RestartAware)),
    ("unguarded", None),
];

struct Variant {
    id: String,
    guard: Option<Guard>,
    cpus: [usize; 2],
}

impl Variant {
    fn writes(&self, trips: u32) -> Option<Band> {
        self.guard.map(|guard| match guard.policy {
            // Not zero: on a busy machine the driver may check the first deadline only during the
            // measurement, which also writes to the device.
            Policy::Lazy => Band::at_most((2.0 / f64::from(trips)).max(0.001)),
            _ => Band::at_least(2.0),
        })
    }

    /// On a timerfd every write is a system call; on a futex no write is one.
    fn device_calls(&self, trips: u32) -> Option<Band> {
        match self.guard?.device {
            Device::Timerfd => self.writes(trips),
            _ => Some(Band::at_most(0.0)),
        }
    }
}

/// How far ahead a guard is armed. It is the same for all guards, so each deadline is later than
/// the one before, and so long that no guard expires.
const GUARD: Duration = Duration::from_secs(600);

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    request.reject_cpus(
        "study rearm --live plays with two threads; leave --cpus out, or use taskset to say where \
         they may run",
    )?;
    let mut study = StudyResult::live("rearm", request);
    let variants = variants();
    let turns = request.effort.turns(2, 8, 8);
    let trips = request.effort.pick(500, 20_000, 1_000_000);
    let taken = interleave("ping-pong", variants.len(), turns, progress, |at| {
        let Variant { guard, cpus, .. } = variants[at];
        Plan { guard, trips, cpus }.play()
    })?;
    for (variant, taken) in variants.iter().zip(&taken) {
        for (at, cell) in columns::cells(&variant.id, &FIGURES, taken).into_iter().enumerate() {
            let band = match at {
                WRITES => variant.writes(trips),
                CALLS => variant.device_calls(trips),
                _ => None,
            };
            study.cells.push(cell.within(band));
        }
    }
    let find = |id: &str| Some(&taken[variants.iter().position(|variant| variant.id == id)?][..]);
    ["", "timerfd.", "two_cpus."].iter().for_each(|prefix| gaps(&mut study, prefix, &find));
    writes_plot(&mut study);
    study.notes.push(how(&variants, trips));
    Ok(study)
}

/// Returns what is measured: each policy with both threads on one CPU, where a round trip is only
/// two context switches; also with a timerfd as the event device; and, if there are two CPUs, with
/// each thread on its own CPU, where a round trip waits for idle CPUs to wake.
fn variants() -> Vec<Variant> {
    let cpus = measure::cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let mut places = vec![
        ("", Device::Futex, [last; 2], &POLICIES[..]),
        // Without a guard, the event device does not matter.
        ("timerfd.", Device::Timerfd, [last; 2], &POLICIES[..3]),
    ];
    if first != last {
        places.push(("two_cpus.", Device::Futex, [first, last], &POLICIES));
    }
    let of_place = |(prefix, device, cpus, policies): (_, _, _, &'static [_])| {
        let variant = move |(name, policy): &(&str, Option<Policy>)| Variant {
            id: format!("{prefix}{name}"),
            guard: policy.map(|policy| Guard { policy, after: GUARD, device }),
            cpus,
        };
        policies.iter().map(variant)
    };
    places.into_iter().flat_map(of_place).collect()
}

const FIGURES: [Column<Taken>; 7] = [
    ("real_us_per_round_trip", "us", |t| t.us(t.usage.real_s)),
    ("user_us_per_round_trip", "us", |t| t.us(t.usage.user_s)),
    ("system_us_per_round_trip", "us", |t| t.us(t.usage.system_s)),
    ("switches_per_round_trip", "switches", |t| t.count(t.usage.switches())),
    ("device_writes_per_round_trip", "writes", |t| t.count(t.device.writes)),
    ("device_calls_per_round_trip", "calls", |t| t.count(t.device_calls)),
    ("wake_calls_per_round_trip", "calls", |t| t.count(t.wake_calls)),
];
const WRITES: usize = 4;
const CALLS: usize = 5;

fn gaps<'a>(study: &mut StudyResult, prefix: &str, find: &dyn Fn(&str) -> Option<&'a [Taken]>) {
    let pairs = [
        ("eager", "lazy", Some(7.202 / 5.32425)),
        ("restart_aware", "lazy", None),
        ("lazy", "unguarded", None),
    ];
    for (above, below, published) in pairs {
        let taken = [above, below].map(|name| find(&format!("{prefix}{name}")));
        let [Some(slow), Some(fast)] = taken else { continue };
        let real = |taken: &[Taken]| taken.iter().map(|t| t.usage.real_s).collect::<Vec<_>>();
        let id = format!("{prefix}gap.{above}_over_{below}");
        let cell = Cell::live(id, "x", Spread::of_ratios(&real(slow), &real(fast)));
        study.cells.push(Cell { published: published.filter(|_| prefix.is_empty()), ..cell });
    }
}

fn writes_plot(study: &mut StudyResult) {
    let bar = |(name, side): (&str, Side)| Bar {
        name: name.replace('_', "-"),
        side,
        value: study.value(&format!("{name}.device_writes_per_round_trip")),
    };
    let bars =
        [("eager", Side::Before), ("restart_aware", Side::Beside), ("lazy", Side::After)].map(bar);
    let shape = Shape::Bars { unit: "writes per round trip", bars: bars.to_vec() };
    study.plots.push(Plot::new("writes", "Device writes per round trip", shape));
}

fn how(variants: &[Variant], trips: u32) -> String {
    let [one, other] = variants[variants.len() - 1].cpus;
    let place = match one == other {
        true => format!("both, and the drivers, on CPU {one}, the only one"),
        false => format!(
            "both, and the drivers, on CPU {other}; two_cpus: on CPUs {one} and {other}, where \
             waking an idle CPU takes so long that eager's writes add little"
        ),
    };
    format!(
        "two threads, {place}; {trips} round trips a run after a warm-up, the policies in turn, \
         forwards and backwards; a guard {} s ahead during every wait. CPU time and switches are \
         of the whole process, including drivers. An atomic add takes {} ns here",
        GUARD.as_secs(),
        figure(measure::atomic_add_ns()),
    )
}
