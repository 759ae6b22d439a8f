//! Scenes on a simulated machine.

use super::{Part, Played, World, per_operation};
use crate::cpu;
use crate::engine::{self, Machine};
use crate::platform::{self, Sim, SimWord};
use crate::ps::Ps;
use crate::random::Random;
use crate::spec::Spec;
use crate::study::Figure;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use tickless_core::platform::Platform;
use tickless_core::time::{CpuId, Ns};

/// Rounds of one play, here and for real.
pub const ROUNDS: u64 = 1_000;

/// How many plays a prediction takes; they begin a little apart.
const PLAYS: u64 = 5;

/// The simulated machine as a world: its CPU 0 and the last one, or all.
#[derive(Clone, Copy, Default, Debug)]
pub struct Simulated;

impl World for Simulated {
    type Word = SimWord;

    fn side(&self) -> usize {
        usize::from(engine::here() != CpuId(0))
    }

    fn now(&self) -> Ns {
        platform::now()
    }

    fn relax(&self, round: u32) {
        Sim.relax(round);
    }

    fn work(&self, for_ns: Ns) {
        cpu::work(Ps::from_ns(for_ns));
    }

    fn section(&self) {
        engine::charge(engine::section());
    }
}

/// What a scene takes on a machine: nanoseconds for each operation, over a few plays. Fails as
/// [`play`] does.
pub fn figure(spec: &Spec, part: Part) -> io::Result<Figure> {
    let plays = (1..=PLAYS).map(|seed| play(spec, part, ROUNDS, seed));
    Ok(Figure::of(plays.collect::<io::Result<_>>()?))
}

/// How many seconds of simulated time a play may take: thousands of times what any part needs.
const LONGEST_S: u64 = 10;

/// One play of a scene; the seed says by how much one side comes later than the other. Fails when
/// there is no memory for stacks. Prices can be such that a scene never ends, as when a line takes
/// longer to a reader than its writer rests: that is an error of the kind `TimedOut`.
pub fn play(spec: &Spec, part: Part, rounds: u64, seed: u64) -> io::Result<f64> {
    let mut machine = Machine::new(spec.costs());
    let cpus = spec.costs().topology.cpus();
    let cpus: Vec<u16> = match part.sides(usize::from(cpus)) {
        2 => vec![0, cpus - 1],
        _ => (0..cpus).collect(),
    };
    let scene = part.scene(&Simulated, cpus.len(), rounds);
    let sides: Rc<[Cell<Option<Played>>]> = cpus.iter().map(|_| Cell::default()).collect();
    let mut random = Random::new(seed);
    for (side, &cpu) in cpus.iter().enumerate() {
        let (scene, sides) = (std::sync::Arc::clone(&scene), Rc::clone(&sides));
        let late = Ps(random.below(1_000_000));
        machine.start(CpuId(cpu), move || {
            cpu::work(late);
            sides[side].set(Some(scene.play(&Simulated)));
        })?;
    }
    machine.run(Ns::from_secs(LONGEST_S));
    // Before what is left is unwound, which may let a side come to its end.
    let sides: Option<Vec<Played>> = sides.iter().map(Cell::get).collect();
    machine.finish();
    let sides = sides.ok_or_else(|| {
        let name = part.name();
        let message = format!("{name} does not end within {LONGEST_S} s of simulated time");
        io::Error::new(io::ErrorKind::TimedOut, message)
    })?;
    Ok(per_operation(&sides))
}
