//! The simulated workload: all CPUs compute, and their ticks read a slow shared counter (the HPET),
//! either each CPU by itself, or one CPU for all that wait (*combined*).
//!
//! Every CPU computes for its users and takes a tick every millisecond, which is a timer on its
//! base. The tick reads the clock a few times. The ticks of all CPUs come at the same moment unless
//! they are skewed. All contention comes from that, because this workload's users read no clock.
//!
//! Which figures are calibrated, implied and predicted: `docs/book/src/machine.md`.

use crate::studies::cell::{Band, Cell, Claim, Role, Scale};
use crate::studies::fit::fitted;
use crate::studies::study::Sides;
use std::cell::{Cell as Shared, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::{Bases, Options, Settings};
use tickless_core::clock::combined::ReadPolicy;
use tickless_core::link::QueueLink;
use tickless_core::owned::OwnedTimer;
use tickless_core::periodic;
use tickless_core::time::{CpuId, Ns, Window};
use tickless_machine::device;
use tickless_machine::engine::Machine;
use tickless_machine::platform::{self, Sim};
use tickless_machine::ps::Ps;
use tickless_machine::shared_clock::{self, SharedClock};
use tickless_machine::size::sized;
use tickless_machine::spec::Spec;
use tickless_machine::{cpu, irq};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Tsc,
    Direct,
    Combined,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticks {
    Aligned,
    Skewed,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub jobs_per_min: f64,
    pub read_percent: f64,
    pub read_ns: f64,
    /// The time that the slowest thousandth of the reads take or exceed, in nanoseconds.
    pub read_p999_ns: f64,
    /// Device reads divided by clock reads. Less than one if a device read serves several CPUs.
    pub device_reads: f64,
    pub digest: u64,
}

/// How long a run is measured, after a warm-up of one and a half tick periods.
const MEASURED: Ns = Ns::from_ms(20);

pub const SIDES: Sides<Source> = Sides { before: Source::Direct, after: Source::Combined };

/// Simulates all figures of a machine, published or not, with the two settings in `sides`.
pub fn cells(spec: &Spec, sides: Sides<Source>) -> io::Result<Vec<Cell>> {
    let cpus = spec.costs().topology.cpus();
    let published = PUBLISHED.iter().find(|published| published.cpus == cpus);
    let direct = run(spec, sides.before, Ticks::Aligned)?;
    let combined = run(spec, sides.after, Ticks::Aligned)?;
    let tsc = run(spec, Source::Tsc, Ticks::Aligned)?;
    let plain = |name: &str, unit, value| Cell::predicted(format!("{cpus}.{name}"), unit, value);
    let mut cells = [
        plain("tsc.jobs_per_min", JOBS, tsc.jobs_per_min),
        plain("hpet.jobs_per_min", JOBS, direct.jobs_per_min),
        plain("combined.jobs_per_min", JOBS, combined.jobs_per_min),
        plain("hpet.read_percent", PERCENT, direct.read_percent),
        plain("combined.read_percent", PERCENT, combined.read_percent),
    ];
    if let Some(published) = published {
        cells = published.claims(cells, &tsc, &direct, &combined);
    }
    let mut cells = cells.to_vec();
    let skewed = run(spec, sides.before, Ticks::Skewed)?;
    cells.push(plain("hpet.skewed.read_percent", PERCENT, skewed.read_percent));
    cells.push(plain("hpet.skewed.jobs_per_min", JOBS, skewed.jobs_per_min));
    cells.push(plain("hpet.read_p999", "ns", direct.read_p999_ns));
    cells.push(plain("combined.read_p999", "ns", combined.read_p999_ns));
    cells.push(plain("combined.device_reads_per_read", "reads", combined.device_reads));
    Ok(cells)
}

/// After a change to the machine, fits its calibrated parameters (those that are fitted to
/// published figures) again: the device's service time on `small`, which is the machine of 72 CPUs
/// and has the same device and workload; then the work per job.
pub fn refit(spec: &Spec, small: &Spec) -> io::Result<Spec> {
    const SHARED: [&str; 4] =
        ["counter.latency_ns", "counter.service_ns", "workload.hz", "workload.reads_per_tick"];
    let [reference, ..] = PUBLISHED;
    let small = SHARED.iter().fold(small.clone(), |small, key| small.with(key, spec.value(key)));
    let small = fitted(&small, "counter.service_ns", reference.hpet_read, |spec| {
        Ok(run(spec, Source::Direct, Ticks::Aligned)?.read_percent)
    })?;
    let spec = spec.with("counter.service_ns", small.value("counter.service_ns"));
    let cpus = spec.costs().topology.cpus();
    let Some(published) = PUBLISHED.iter().find(|published| published.cpus == cpus) else {
        return Ok(spec);
    };
    fitted(&spec, "workload.jobs_per_cpu_minute", published.tsc, |spec| {
        Ok(run(spec, Source::Tsc, Ticks::Aligned)?.jobs_per_min)
    })
}

/// Simulates the points of a plot over the number of CPUs, on machines of the same kind as `spec`,
/// which have to be possible ([`exactly`](tickless_machine::size::exactly)).
pub fn curve(spec: &Spec, cpus: &[u16]) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for count in cpus {
        let smaller = sized(spec, *count);
        for (name, source) in [("hpet", Source::Direct), ("combined", Source::Combined)] {
            let outcome = run(&smaller, source, Ticks::Aligned)?;
            let cell = |name: String, unit, value| Cell::predicted(name, unit, value);
            let percent = outcome.read_percent;
            cells.push(cell(format!("{count}.{name}.read_percent"), PERCENT, percent));
            cells.push(cell(format!("{count}.{name}.jobs_per_min"), JOBS, outcome.jobs_per_min));
        }
    }
    Ok(cells)
}

const JOBS: &str = "jobs/min";
const PERCENT: &str = "% of CPU time";

struct Published {
    cpus: u16,
    tsc: f64,
    hpet: f64,
    combined: f64,
    hpet_read: f64,
    combined_read: f64,
}

impl Published {
    fn claims(
        &self,
        [tsc_jobs, jobs, shared_jobs, read, shared_read]: [Cell; 5],
        tsc: &Outcome,
        direct: &Outcome,
        combined: &Outcome,
    ) -> [Cell; 5] {
        // The formula to compare the simulation with: the time in the read grows in proportion to
        // the number of CPUs that wait for the device, as long as the device is the bottleneck.
        let [reference, ..] = PUBLISHED;
        let in_proportion = reference.hpet_read * f64::from(self.cpus) / f64::from(reference.cpus);
        let loss = 100.0 * (self.hpet / self.tsc - 1.0);
        let lost = Claim::change(tsc.jobs_per_min, direct.jobs_per_min, a_quarter(loss));
        let taken_back = share(self.tsc, self.hpet, self.combined);
        let regained = Claim {
            effect: share(tsc.jobs_per_min, direct.jobs_per_min, combined.jobs_per_min),
            scale: Scale::Percent,
            null_model: 0.0,
            published: Some([taken_back; 2]),
            band: a_quarter(taken_back),
        };
        let less = self.hpet_read / self.combined_read;
        let less_time =
            Claim::times_less(direct.read_percent, combined.read_percent, Band::times(less, 2.0));
        let calibrated = |cell: Cell| Cell { role: Role::Calibrated, ..cell };
        let read = read.published(self.hpet_read);
        [
            calibrated(tsc_jobs.published(self.tsc)),
            jobs.published(self.hpet)
                .claims(lost.published(loss, loss))
                .beside_formula(tsc.jobs_per_min * (1.0 - in_proportion / 100.0)),
            shared_jobs.published(self.combined).claims(regained),
            match self.cpus == reference.cpus {
                true => calibrated(read),
                false => read.beside_formula(in_proportion),
            },
            shared_read.published(self.combined_read).claims(less_time.published(less, less)),
        ]
    }
}

fn share(tsc: f64, direct: f64, combined: f64) -> f64 {
    100.0 * (combined - direct) / (tsc - direct)
}

fn a_quarter(effect: f64) -> Band {
    Band::around(effect, 25.0)
}

const PUBLISHED: [Published; 2] = [
    Published {
        cpus: 72,
        tsc: 646_515.0,
        hpet: 566_708.0,
        combined: 638_791.0,
        hpet_read: 4.99,
        combined_read: 1.41,
    },
    Published {
        cpus: 480,
        tsc: 3_145_329.0,
        hpet: 1_108_537.0,
        combined: 3_019_934.0,
        hpet_read: 34.0,
        combined_read: 2.96,
    },
];

struct Run {
    bases: Arc<Bases<Sim>>,
    clock: SharedClock,
    source: Source,
    reads: RefCell<Vec<u64>>,
    /// Reads of the clock so far, by all CPUs, with those of the warm-up.
    clock_reads: Shared<u64>,
    /// Device reads divided by clock reads, when CPU 0 ends.
    device_reads: Shared<f64>,
    /// How much work was done, in picoseconds that a thread alone on its core would need for it.
    computed: Shared<u64>,
    passed: Shared<u64>,
}

/// Simulates jobs on all CPUs, whose ticks read the time from `source`.
pub fn run(spec: &Spec, source: Source, ticks: Ticks) -> io::Result<Outcome> {
    let costs = spec.costs();
    let cpus = costs.topology.cpus();
    let period = Ns((1e9 / spec.value("workload.hz").max(1.0)) as u64);
    let mut machine = Machine::new(costs);
    let policy = match source {
        Source::Combined => ReadPolicy::Combined,
        Source::Tsc | Source::Direct => ReadPolicy::Direct,
    };
    let run = Rc::new(Run {
        bases: Arc::new(Bases::new(Sim, cpus, Settings::default())),
        clock: shared_clock::new(policy),
        source,
        reads: RefCell::new(Vec::new()),
        clock_reads: Shared::new(0),
        device_reads: Shared::new(0.0),
        computed: Shared::new(0),
        passed: Shared::new(0),
    });
    tick_in_interrupts(&mut machine, &run, spec, period);
    let timers: Rc<Vec<OwnedTimer<Sim, QueueLink>>> =
        Rc::new((0..cpus).map(|_| OwnedTimer::new(&run.bases, 0)).collect());
    for cpu in 0..cpus {
        let offset = match ticks {
            Ticks::Aligned => 0,
            Ticks::Skewed => period.0 * u64::from(cpu) / u64::from(cpus),
        };
        let (run, timers) = (Rc::clone(&run), Rc::clone(&timers));
        machine.start(CpuId(cpu), move || {
            // These timers are never shut down, so arming does not fail.
            let window = Window::at(Ns(period.0 + offset));
            let _ = timers[cpu as usize].start(window, Ns::ZERO, Options::default());
            run.compute(period);
            if cpu == 0 {
                let clock_reads = run.clock_reads.get().max(1) as f64;
                run.device_reads.set(device::counter_reads() as f64 / clock_reads);
            }
        })?;
    }
    machine.run(Ns::NEVER);
    let digest = machine.digest();
    drop(timers);
    Ok(run.outcome(spec, cpus, digest))
}

/// Makes each CPU's tick read the clock some times, with other work between the reads.
fn tick_in_interrupts(machine: &mut Machine, run: &Rc<Run>, spec: &Spec, period: Ns) {
    let run = Rc::clone(run);
    let reads = spec.value("workload.reads_per_tick") as u32;
    let tick = spec.time("os.tick_ns");
    machine.on_interrupt(move |_: irq::Vector| {
        run.bases.expire(cpu::here(), |firing| {
            for read in 0..reads {
                // Spread the tick's other work between its reads of the clock.
                if read > 0 || reads == 1 {
                    cpu::charge(Ps(tick.0 / u64::from(reads.max(2) - 1)));
                }
                run.read_clock(period);
            }
            if firing.now > Ns(2 * period.0).after(MEASURED) {
                return CallbackResult::Done;
            }
            CallbackResult::Restart(periodic::forward(firing.window, firing.now, period).0)
        });
    });
}

impl Run {
    /// Reads the clock. Records the duration unless the machine is still warming up.
    fn read_clock(&self, period: Ns) {
        let began = cpu::clock();
        if self.source == Source::Tsc {
            platform::now();
        } else {
            self.clock.read();
        }
        self.clock_reads.set(self.clock_reads.get() + 1);
        if is_measured(began, period) {
            self.reads.borrow_mut().push((cpu::clock() - began).0);
        }
    }

    /// Does jobs of 10 us for the measured time. Adds up the jobs' work, and the time they took.
    fn compute(&self, period: Ns) {
        const JOB: Ps = Ps(10_000_000);
        let end = Ps::from_ns(Ns(2 * period.0 - period.0 / 2).after(MEASURED));
        cpu::wait_until(Ps::from_ns(Ns(2 * period.0 - period.0 / 2)));
        let began = cpu::clock();
        let mut done = 0;
        while cpu::clock() < end {
            cpu::work(JOB);
            done += JOB.0;
        }
        self.computed.set(self.computed.get() + done);
        self.passed.set(self.passed.get() + (cpu::clock() - began).0);
    }

    fn outcome(&self, spec: &Spec, cpus: u16, digest: u64) -> Outcome {
        let mut reads = self.reads.borrow_mut();
        let total: u64 = reads.iter().sum();
        reads.sort_unstable();
        let count = reads.len().max(1);
        let time = f64::from(cpus) * Ps::from_ns(MEASURED).0 as f64;
        let busy = self.computed.get() as f64 / (self.passed.get() as f64).max(1.0);
        Outcome {
            jobs_per_min: busy * spec.value("workload.jobs_per_cpu_minute") * f64::from(cpus),
            read_percent: 100.0 * total as f64 / time,
            read_ns: total as f64 / count as f64 / 1e3,
            read_p999_ns: reads.get(count * 999 / 1000).copied().unwrap_or(0) as f64 / 1e3,
            device_reads: self.device_reads.get(),
            digest,
        }
    }
}

fn is_measured(at: Ps, period: Ns) -> bool {
    at >= Ps::from_ns(Ns(2 * period.0 - period.0 / 2))
        && at < Ps::from_ns(Ns(2 * period.0 - period.0 / 2).after(MEASURED))
}
