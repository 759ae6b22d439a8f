//! Runs scenes (small concurrent benchmarks) on a simulated machine, to predict their times.

use super::{Backend, Scene, SideResult, per_operation};
use crate::cpu;
use crate::engine::Machine;
use crate::platform::{self, GuardedLines, Sim, SimWord};
use crate::ps::Ps;
use crate::random::Random;
use crate::spec::Spec;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tickless_core::platform::Platform;
use tickless_core::time::{CpuId, Ns};

pub const ROUNDS: u64 = 1_000;

/// The number of simulated runs for one prediction. They differ in one CPU's starting time.
const PLAYS: u64 = 5;

/// The backend of scenes on a simulated machine. They run on CPU 0 and the last CPU, or on all.
#[derive(Debug)]
pub struct Simulated;

impl Backend for Simulated {
    type Word = SimWord;
    type Guarded = GuardedLines;

    fn side() -> usize {
        usize::from(cpu::here() != CpuId(0))
    }

    fn now() -> Ns {
        platform::now()
    }

    fn relax(round: u32) {
        Sim.relax(round);
    }

    fn work(duration: Ns) {
        cpu::work(Ps::from_ns(duration));
    }

    fn depend() {
        cpu::depend();
    }

    fn section<T>(guarded: &GuardedLines) {
        guarded.access::<T>();
    }
}

pub fn plays(spec: &Spec, scene: Scene) -> io::Result<Vec<f64>> {
    (1..=PLAYS).map(|seed| play(spec, scene, ROUNDS, seed)).collect()
}

/// The time limit of a run, in seconds of simulated time: thousands of times what a scene needs.
const LONGEST_S: u64 = 10;

/// Simulates one run of a scene. The seed decides how much later one CPU starts than the other.
///
/// Fails when there is no memory for stacks, and with [`io::ErrorKind::TimedOut`] when the scene
/// never ends at the machine's prices. For example, a reader of a sequence lock never succeeds if a
/// line takes longer to reach it than the writer pauses.
pub fn play(spec: &Spec, scene: Scene, rounds: u64, seed: u64) -> io::Result<f64> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let cpus: Vec<u16> = match scene.sides(usize::from(cpus)) {
        2 => vec![0, cpus - 1],
        _ => (0..cpus).collect(),
    };
    let play = scene.play::<Simulated>(cpus.len(), rounds);
    let sides: Rc<[Cell<Option<SideResult>>]> = cpus.iter().map(|_| Cell::default()).collect();
    let mut random = Random::new(seed);
    for (side, &cpu) in cpus.iter().enumerate() {
        let (play, sides) = (Arc::clone(&play), Rc::clone(&sides));
        let late = Ps(random.below(1_000_000));
        machine.start(CpuId(cpu), move || {
            cpu::work(late);
            sides[side].set(Some(play()));
        })?;
    }
    machine.run(Ns::from_secs(LONGEST_S));
    // Collect the results before calling `finish`, in which a side that has not finished in time
    // can still end and set a result.
    let sides: Option<Vec<SideResult>> = sides.iter().map(Cell::get).collect();
    machine.finish();
    let sides = sides.ok_or_else(|| {
        let name = scene.name();
        let message = format!("{name} does not end within {LONGEST_S} s of simulated time");
        io::Error::new(io::ErrorKind::TimedOut, message)
    })?;
    Ok(per_operation(&sides))
}
