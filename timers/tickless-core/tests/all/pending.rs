//! Walks over pending timers, and their numbers on each level.

use crate::support::random::{Rng, with_seeds};
use crate::support::scene::{HERE, START, Scene};
use crate::support::timers::Family;
use std::collections::{BTreeMap, BTreeSet};
use tickless_core::bases::firing::CallbackResult;
use tickless_core::bases::pending::{Pending, PendingIn, Walk};
use tickless_core::bases::{Deferral, FiresIn, HOLDING, Options, Settings};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::Ns;

/// Walks all pending timers in slices of this size. Returns them, and whether they are complete.
fn walk(scene: &Scene, slice: usize) -> (Vec<Pending<usize>>, bool) {
    let (mut walk, mut found, mut is_whole) = (Walk::begin(), Vec::new(), true);
    let mut one = Vec::with_capacity(slice);
    while !walk.is_over() {
        is_whole &= scene.bases.walk(HERE, &mut walk, &mut one);
        assert!(one.len() <= slice && one.capacity() == slice, "the slice has grown");
        found.append(&mut one);
    }
    (found, is_whole)
}

fn settings() -> Settings {
    Settings { deferral: Deferral::OnExpiry, ..Settings::default() }
}

/// Goal: a walk visits each pending timer once, for any size of slices, as the levels count them.
#[test]
fn a_walk_visits_each_timer_once() {
    with_seeds(if cfg!(miri) { 2 } else { 200 }, |seed| {
        let mut random = Rng::new(seed);
        let scene = Scene::new(settings(), 1);
        let timers: Vec<_> =
            (0..60).map(|task| scene.timer(random.pick(&Family::BOTH), task)).collect();
        let mut armed = BTreeMap::new();
        for _ in 0..120 {
            let task = random.below(60) as usize;
            if random.one_in(4) {
                timers[task].cancel();
                armed.remove(&task);
                continue;
            }
            // Few different deadlines, so that some are shared.
            let after = Ns((1 << random.below(50)) + random.below(3) * 1_000_000);
            let wakes = if random.one_in(3) { Wakes::No } else { Wakes::Yes };
            let fires_in = random.pick(&[FiresIn::Handler, FiresIn::Thread]);
            let options = Options { wakes, fires_in, ..Options::default() };
            scene.start_with(&timers[task], HERE, after, options);
            armed.insert(task, START.after(after));
        }
        for slice in [1, 7, 60, 1_000] {
            let (found, is_whole) = walk(&scene, slice);
            let seen: BTreeMap<usize, Ns> =
                found.iter().map(|one| (one.task, one.window.soft)).collect();
            assert_eq!(seen.len(), found.len(), "one was seen twice");
            assert!(seen.iter().all(|one| armed.get(one.0) == Some(one.1)), "{seen:?}");
            assert_eq!(is_whole, seen.len() == armed.len(), "by {slice}");
            assert!(is_whole);
            assert!(
                found.iter().all(|one| one.due >= one.window.soft || one.place == PendingIn::Due)
            );
        }
        let (found, view) = (walk(&scene, 60).0, scene.bases.view(HERE).expect("a base"));
        let of = |wanted: &dyn Fn(&Pending<usize>) -> bool| {
            found.iter().filter(|one| wanted(one)).count()
        };
        for (level, &count) in view.levels.levels.iter().enumerate() {
            let place = PendingIn::Level(level as u8);
            assert_eq!(of(&|one| one.place == place && one.wakes == Wakes::Yes), count);
        }
        assert_eq!(of(&|one| one.wakes == Wakes::No), view.levels.deferrable);
        assert_eq!(of(&|one| matches!(one.place, PendingIn::Queue(_))), view.precise);
        assert_eq!(of(&|_| true), view.precise + view.coarse);
    });
}

/// Goal: a list longer than a slice is visited in parts, while other timers are removed.
#[test]
fn a_long_list_is_visited_in_parts() {
    for family in Family::BOTH {
        let scene = Scene::new(settings(), 1);
        let timers: Vec<_> = (0..200).map(|task| scene.timer(family, task)).collect();
        for (nth, timer) in timers.iter().enumerate() {
            scene.start(timer, HERE, Ns::from_ms(if nth < 190 { 20 } else { 40 + nth as u64 }));
        }
        for slice in [1, 4, 100, 1_000] {
            let (found, is_whole) = walk(&scene, slice);
            let seen: BTreeSet<_> = found.iter().map(|one| one.task).collect();
            assert_eq!((found.len(), seen.len(), is_whole), (200, 200, true), "by {slice}");
        }
        let (mut at, mut slice, mut seen) =
            (Walk::begin(), Vec::with_capacity(50), BTreeSet::new());
        while !at.is_over() {
            assert!(scene.bases.walk(HERE, &mut at, &mut slice));
            assert!(slice.iter().all(|one| seen.insert(one.task)), "one was seen twice");
            // Cancel the next timers of the walk, and some that it has visited.
            let pending = || timers.iter().enumerate().filter(|(_, timer)| timer.is_pending());
            let next = pending().filter(|(task, _)| !seen.contains(task)).take(3);
            let before = pending().filter(|(task, _)| seen.contains(task)).step_by(3).take(9);
            next.chain(before).for_each(|(_, timer)| _ = timer.cancel());
            scene.bases.check(HERE).expect("a sound base");
        }
        let left = timers.iter().enumerate().filter(|(_, timer)| timer.is_pending());
        assert!(left.map(|(task, _)| task).all(|task| seen.contains(&task)), "{family:?}");
        assert!(scene.bases.view(HERE).expect("a base").longest_holding <= HOLDING);
    }
}

/// Goal: a walk over due timers continues behind those that have fired.
#[test]
fn a_walk_over_due_timers_continues_behind_fired_ones() {
    let scene = Scene::new(settings(), 1);
    let timers: Vec<_> = (0..20).map(|task| scene.timer(Family::Coarse, task)).collect();
    timers.iter().for_each(|timer| _ = scene.start(timer, HERE, Ns::from_ms(20)));
    scene.go(Ns::from_ms(30));
    let (mut at, mut slice, mut seen) = (Walk::begin(), Vec::with_capacity(3), Vec::new());
    scene.handle(HERE, |firing| {
        if firing.task % 4 == 0 {
            slice.clear();
            assert!(scene.bases.walk(HERE, &mut at, &mut slice));
            seen.extend(slice.iter().map(|one| (firing.task, one.task)));
        }
        CallbackResult::Done
    });
    let expected = [0, 4, 8, 12, 16].into_iter().flat_map(|at| (1..=3).map(move |n| (at, at + n)));
    assert_eq!(seen, expected.collect::<Vec<_>>());
}

/// Goal: of two walks that stop in one list, the first ends early and reports it.
#[test]
fn a_walk_that_loses_its_place_reports_it() {
    for family in Family::BOTH {
        let scene = Scene::new(settings(), 1);
        let timers: Vec<_> = (0..10).map(|task| scene.timer(family, task)).collect();
        timers.iter().for_each(|timer| _ = scene.start(timer, HERE, Ns::from_ms(20)));
        let rest = |at: &mut Walk| {
            let (mut slice, mut found, mut is_whole) = (Vec::with_capacity(4), 0, true);
            while !at.is_over() {
                is_whole &= scene.bases.walk(HERE, at, &mut slice);
                found += slice.len();
            }
            (found, is_whole)
        };
        let begin = || {
            let (mut at, mut slice) = (Walk::begin(), Vec::with_capacity(4));
            while slice.is_empty() {
                assert!(scene.bases.walk(HERE, &mut at, &mut slice));
            }
            at
        };
        let (mut first, mut second) = (begin(), begin());
        assert_eq!((rest(&mut first), rest(&mut second)), ((0, false), (6, true)), "{family:?}");
        let (mut walk, mut found) = (begin(), Vec::new());
        scene.go(Ns::from_ms(30));
        scene.handle(HERE, |_| {
            found.push(rest(&mut walk).0);
            CallbackResult::Done
        });
        // All but the fired one; coarse timers are on another list now.
        let expected = if family == Family::Coarse { 9 } else { 6 };
        assert_eq!((found[0], found[1..].iter().sum::<usize>()), (expected, 0), "{family:?}");
    }
}
