//! The timekeeper: clocks that are read while they are corrected.

use crate::support::{Device, Sometimes, Watched, Yield, explore, relax, run_all};
use std::sync::Arc;
use tickless_core::clock::counter::Width;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::sources::Fault;
use tickless_core::clock::timekeeper::Timekeeper;
use tickless_core::time::Ns;

type Keeper = Timekeeper<Watched, Device, Yield>;

/// Makes a timekeeper whose devices advance by 8 ns a reading.
fn keeper(devices: usize) -> Keeper {
    let devices = (0..devices).map(|_| Device::new(Width::bits(48), |n| 8 * n)).collect();
    Timekeeper::new(devices, relax as Yield).unwrap()
}

#[test]
fn time_never_goes_back() {
    let switched = Sometimes::default();
    let saw = switched.clone();
    explore(2, move || {
        let mut keeper = keeper(2);
        let (reader, saw) = (Arc::clone(keeper.reader()), saw.clone());
        let keep = Box::new(move || {
            keeper.tick();
            keeper.blame(SourceId(0), Fault::Withdrawn);
        });
        let read = Box::new(move || {
            let (first, second) = (reader.monotonic(), reader.monotonic());
            assert!(first <= second, "C8: {second:?} after {first:?}");
            saw.saw(reader.source() == SourceId(1));
        });
        run_all(vec![keep, read]);
    });
    assert!(switched.happened(), "no reader used the second source");
}

#[test]
fn time_does_not_go_back_across_threads() {
    explore(2, || {
        let mut keeper = keeper(2);
        let reader = Arc::clone(keeper.reader());
        let keep = Box::new(move || _ = keeper.blame(SourceId(0), Fault::Withdrawn));
        let read = Box::new(move || {
            let first = reader.monotonic();
            let second = loom::thread::spawn(move || reader.monotonic()).join().unwrap();
            assert!(first <= second, "C8: {second:?} after {first:?}");
        });
        run_all(vec![keep, read]);
    });
}

#[test]
fn a_reader_that_sees_the_step_sees_the_time() {
    let seen = [(); 3].map(|()| Sometimes::default());
    let see = seen.clone();
    explore(2, move || {
        let mut keeper = keeper(1);
        let (reader, see) = (Arc::clone(keeper.reader()), see.clone());
        let keep = Box::new(move || {
            keeper.set_realtime(Ns::from_secs(1000));
            let suspended = keeper.suspend();
            keeper.resume(suspended, Ns::from_secs(50));
        });
        let read = Box::new(move || {
            let steps = reader.steps();
            see[steps as usize].saw(true);
            let (real, boot) = (reader.realtime(), reader.boottime());
            assert!(steps < 1 || real >= Ns::from_secs(1000), "{steps} steps, {real:?}");
            assert!(steps < 2 || real >= Ns::from_secs(1050), "{steps} steps, {real:?}");
            assert!(steps < 2 || boot >= Ns::from_secs(50), "{steps} steps, {boot:?}");
        });
        run_all(vec![keep, read]);
    });
    assert!(seen.iter().all(Sometimes::happened), "some schedules were not explored");
}
