//! The timekeeper: clocks that are read while they are kept right.

use crate::world::{Device, Watched, Yield, explore, relax};
use loom::thread;
use std::sync::Arc;
use tickless_core::clock::counter::Width;
use tickless_core::clock::segment::SourceId;
use tickless_core::clock::slope::Slope;
use tickless_core::clock::sources::Fault;
use tickless_core::clock::timekeeper::Timekeeper;
use tickless_core::time::Ns;

type Keeper = Timekeeper<Watched, Device, Yield>;

/// Over devices that count nanoseconds.
fn keeper(devices: usize) -> Keeper {
    let devices = (0..devices).map(|_| Device::new(Width::bits(48), |n| n)).collect();
    Timekeeper::new(devices, relax as Yield).unwrap()
}

/// Goal: C8: while the slope changes and the source as well, no reader sees time go back, and
/// none that another one has woken.
#[test]
fn time_never_goes_back() {
    explore(2, || {
        let mut keeper = keeper(2);
        let face = Arc::clone(keeper.face());
        let keeping = thread::spawn(move || {
            keeper.steer(Slope(1 << 31));
            keeper.blame(SourceId(0), Fault::Withdrawn);
        });
        let first = face.monotonic();
        let other = Arc::clone(&face);
        let second = thread::spawn(move || other.monotonic());
        let second = second.join().unwrap();
        assert!(first <= second, "C8: {second:?} after {first:?}");
        keeping.join().unwrap();
        assert_eq!(face.source(), SourceId(1));
    });
}

/// Goal: H5: who sees that realtime was set reads the time that it was set to.
#[test]
fn who_sees_the_step_sees_the_time() {
    explore(3, || {
        let mut keeper = keeper(1);
        let face = Arc::clone(keeper.face());
        let keeping = thread::spawn(move || {
            keeper.set_realtime(Ns::from_secs(1000));
            let suspended = keeper.suspend();
            keeper.resume(suspended, Ns::from_secs(50));
        });
        let steps = face.steps();
        let (real, boot) = (face.realtime(), face.boottime());
        assert!(steps < 1 || real >= Ns::from_secs(1000), "{steps} steps, {real:?}");
        assert!(steps < 2 || real >= Ns::from_secs(1050), "{steps} steps, {real:?}");
        assert!(steps < 2 || boot >= Ns::from_secs(50), "{steps} steps, {boot:?}");
        keeping.join().unwrap();
    });
}
