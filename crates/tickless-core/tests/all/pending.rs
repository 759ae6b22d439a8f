//! Looking at what is pending: how many where, one by one, and how late what fired was.

use crate::world::random::{Random, with_seeds};
use crate::world::scene::{START, Scene};
use crate::world::timers::Family;
use std::collections::BTreeMap;
use tickless_core::bases::expiry::Verdict;
use tickless_core::bases::pending::{Pending, PendingIn, Walk};
use tickless_core::bases::{Deferral, FiresIn, Options, Settings};
use tickless_core::queues::wheel::Wakes;
use tickless_core::time::{CpuId, Ns, Window};

const HERE: CpuId = CpuId(0);

/// Everything pending, by slices of this size, and whether that was all.
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

/// Goal: a walk sees each pending timer once, with what it was armed for, however it is sliced;
/// the levels' numbers are those of the walk.
/// Method: timers of both families, of any distance, pushed out and cancelled by chance.
#[test]
fn a_walk_sees_each_once() {
    with_seeds(if cfg!(miri) { 2 } else { 200 }, |seed| {
        let mut random = Random::new(seed);
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
            assert!(slice < 60 || is_whole);
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
        assert_eq!(of(&|one| matches!(one.place, PendingIn::Queue(_))), view.ranged);
        assert_eq!(of(&|_| true), view.ranged + view.coarse);
    });
}

/// Goal: what has more timers than a slice on one list, or with one deadline, is cut, and says so;
/// the rest is still seen.
#[test]
fn what_is_too_long_is_cut() {
    for family in Family::BOTH {
        let scene = Scene::new(settings(), 1);
        let timers: Vec<_> = (0..12).map(|task| scene.timer(family, task)).collect();
        for (nth, timer) in timers.iter().enumerate() {
            scene.start(timer, HERE, Ns::from_ms(if nth < 10 { 20 } else { 40 + nth as u64 }));
        }
        let (found, is_whole) = walk(&scene, 4);
        assert_eq!((found.len(), is_whole), (4 + 2, false));
        assert_eq!(walk(&scene, 10).0.len(), 12);
        assert!(walk(&scene, 10).1);
    }
}

/// Goal: lateness counts each expiry once, by family, from the deadline on.
#[test]
fn lateness_is_counted_by_family() {
    let scene = Scene::new(Settings::default(), 1);
    let [coarse, ranged] = [scene.timer(Family::Coarse, 0), scene.timer(Family::Ranged, 1)];
    scene.start(&coarse, HERE, Ns::from_ms(10));
    let soft = START.after(Ns::from_ms(10));
    let window = Window::new(soft, soft.after(Ns::from_ms(5)));
    ranged.start(window, START, Options::default()).expect("not shut down");
    scene.go(Ns::from_ms(12));
    let mut due = Vec::new();
    scene.handle(HERE, |firing| {
        due.push((firing.task, firing.due.since(START)));
        Verdict::Done
    });
    assert_eq!(due, [(1, Ns::from_ms(15)), (0, Ns::from_ms(10))]);
    let late = scene.bases.view(HERE).expect("a base").late;
    // 2 ms are between 2^20 and 2^21 ns.
    let in_bucket = [late.coarse.counts()[21], late.ranged.counts()[21]];
    assert_eq!((in_bucket, late.coarse.total(), late.ranged.total()), ([1, 1], 1, 1));
    assert_eq!(late.plus(&late).ranged.total(), 2);
}
