//! Pinned timers in a program's own structs.

use crate::support::{MS, child_test, wait_until};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use tickless::callback::CallbackLock;
use tickless::embed::{OnFire, PinnedHrTimer};
use tickless::{Fired, Timers, VirtualTime};

pin_project_lite::pin_project! {
    /// A struct that the callback of its own timer references.
    struct Circle {
        #[pin]
        timer: PinnedHrTimer<LastOwner>,
        counts: CountsDrops,
    }
}

struct CountsDrops(Arc<AtomicU32>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A callback that drops the last reference to the struct that contains its timer.
struct LastOwner {
    circle: Arc<Mutex<Option<Pin<Arc<Circle>>>>>,
    after: mpsc::Sender<u32>,
    panics: bool,
}

impl OnFire for LastOwner {
    fn fired(&mut self, fired: &mut Fired<'_>) {
        fired.restart(MS);
        drop(self.circle.lock().unwrap().take());
        // The callback still exists, although its timer has been dropped.
        self.after.send(5).unwrap();
        assert!(!self.panics, "panics after its timer was dropped");
    }
}

#[test]
fn a_callback_drops_its_own_struct() {
    for panics in [false, true] {
        let time = VirtualTime::new();
        let (dropped, circle) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
        let (after, rx) = mpsc::channel();
        let own = LastOwner { circle: Arc::clone(&circle), after, panics };
        let timer = PinnedHrTimer::new(time.timers(), own);
        let whole = Arc::pin(Circle { timer, counts: CountsDrops(Arc::clone(&dropped)) });
        whole.as_ref().project_ref().timer.timer().start(MS).unwrap();
        *circle.lock().unwrap() = Some(whole);
        time.advance(5 * MS);
        assert_eq!((dropped.load(Ordering::SeqCst), rx.try_recv()), (1, Ok(5)));
        assert_eq!(rx.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        assert_eq!(Arc::strong_count(&circle), 1, "the callback was dropped");
        assert_eq!(
            (time.timers().stats().pending(), time.timers().stats().panics),
            (0, panics.into())
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn a_drop_that_would_never_end_aborts() {
    const CHILD: &str = "TICKLESS_TEST_ABORTS";
    if std::env::var_os(CHILD).is_some() {
        let timers = Timers::builder().bases(1).start().unwrap();
        let (lock, begun) = (Arc::new(CallbackLock::new(())), Arc::new(AtomicBool::new(false)));
        let (wanted, on) = (Arc::clone(&lock), Arc::clone(&begun));
        let timer = Box::pin(PinnedHrTimer::new(&timers, move |_: &mut Fired<'_>| {
            on.store(true, Ordering::SeqCst);
            drop(wanted.lock());
        }));
        let held = lock.lock();
        timer.as_ref().timer().start(MS).unwrap();
        wait_until("its callback runs", || begun.load(Ordering::SeqCst));
        drop(timer);
        drop(held);
        return;
    }
    let mut child = child_test("embed::a_drop_that_would_never_end_aborts", CHILD, "1");
    let ended = child.output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "it continued: {stderr}");
    assert!(stderr.contains("dropped by a callback"), "{stderr}");
}
