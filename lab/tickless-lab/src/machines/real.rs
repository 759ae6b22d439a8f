//! Plays the scenes of the machine crate on real CPUs. A scene is a small program whose steps are
//! timed; the same code also runs on simulated CPUs, with simulated atomics.

use crate::error::LabError;
use crate::measure::{interleave, joined, stay_on, times_lost};
use crate::progress::Progress;
use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Instant;
use tickless_core::time::Ns;
use tickless_machine::validate::simulate::ROUNDS;
use tickless_machine::validate::{Backend, Play, Scene, SideResult, per_operation};

thread_local! {
    static SIDE: Cell<usize> = const { Cell::new(0) };
}

/// The real CPUs of this machine. A scene has several sides that run at the same time. Each side is
/// a thread that is bound to one CPU.
#[derive(Debug)]
pub struct Real;

impl Backend for Real {
    type Word = AtomicU64;
    type Guarded = ();

    fn side() -> usize {
        SIDE.get()
    }

    fn now() -> Ns {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        Ns(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }

    fn relax(_: u32) {
        spin_loop();
    }

    fn work(duration: Ns) {
        let until = Self::now().after(duration);
        while Self::now() < until {}
    }

    /// Does nothing: a real CPU waits by itself for a load whose value the next address needs.
    fn depend() {}

    /// Does nothing: on a real CPU the code of a critical section takes time anyway. In a
    /// simulation this call adds that time.
    fn section<T>((): &()) {}
}

/// Plays each scene (a small timed program) `turns` times, alternating between the scenes. Returns
/// for each scene the nanoseconds per operation in each play. A scene with two sides, which are
/// threads on different CPUs, is played on the first and the last of these CPUs. If a side lost its
/// CPU during a play, the play is repeated, a few times at most.
pub fn play(
    what: &'static str,
    parts: &[Scene],
    cpus: &[usize],
    turns: usize,
    progress: &dyn Progress,
) -> Result<Vec<Vec<f64>>, LabError> {
    const TRIES: usize = 4;
    // Keep the memory of earlier plays, so that each new play gets other addresses: how long a line
    // takes between two cores depends on which part of the shared cache its address belongs to.
    let mut earlier = Vec::new();
    interleave(what, parts.len(), turns, progress, |part| {
        let mut once = |scene| once(scene, cpus, &mut earlier);
        let (mut ns, mut lost) = once(parts[part])?;
        // While one side (a thread of the scene) has lost its CPU, the other side runs alone. That
        // would falsify the measurement, so repeat it.
        for _ in 1..TRIES {
            if lost == 0 {
                break;
            }
            (ns, lost) = once(parts[part])?;
        }
        Ok(ns)
    })
}

/// Plays a scene once, on real CPUs. Returns ns per operation, and how often a side lost its CPU.
fn once(scene: Scene, cpus: &[usize], earlier: &mut Vec<Play>) -> Result<(f64, i64), LabError> {
    let all = cpus.len();
    let cpus = match scene.sides(all) {
        2 => vec![cpus[0], cpus[all - 1]],
        _ => cpus.to_vec(),
    };
    let play = scene.play::<Real>(cpus.len(), ROUNDS);
    let sides = thread::scope(|scope| {
        let begin = |(side, &cpu): (usize, &usize)| {
            let play = &play;
            scope.spawn(move || {
                let placed = stay_on(cpu);
                SIDE.set(side);
                // Play even if binding failed, because the other side waits for this thread.
                let before = times_lost();
                let result = play();
                placed.map(|()| (result, times_lost() - before))
            })
        };
        let threads: Vec<_> = cpus.iter().enumerate().map(begin).collect();
        let played = threads.into_iter().map(|thread| joined(thread, "that plays a scene"));
        played.collect::<Result<Vec<_>, LabError>>()
    })?;
    // Plays with large tables are dropped: page faults of new memory would be measured.
    if !matches!(scene, Scene::OwnTimer | Scene::Cancel) {
        earlier.push(play);
    }
    let (sides, lost): (Vec<SideResult>, Vec<i64>) = sides.into_iter().unzip();
    Ok((per_operation(&sides), lost.into_iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cpus;
    use crate::progress::Hidden;

    #[test]
    fn scenes_are_played_on_real_threads() {
        let cpus = cpus();
        if cpus.len() == 1 {
            return;
        }
        let parts: Vec<Scene> = [&Scene::FITTED[..], &Scene::PREDICTED, &Scene::CONTENDED]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let taken = play("a test", &parts, &cpus, 1, &Hidden).unwrap();
        for (part, ns) in parts.iter().zip(taken) {
            assert!(ns[0] > 0.0 && ns[0].is_finite(), "{part:?}: {ns:?}");
        }
    }
}
