//! Threads, processes, and programs that run others.

use crate::harness::{inside, shell, takes};
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[test]
fn threads_wake_in_the_order_of_their_deadlines() {
    inside(|| {
        let order = Mutex::new(Vec::new());
        takes("the last thread", 100.0, || {
            std::thread::scope(|scope| {
                for seconds in (1..=100).rev() {
                    let order = &order;
                    scope.spawn(move || {
                        std::thread::sleep(Duration::from_secs(seconds));
                        order.lock().unwrap().push(seconds);
                    });
                }
            });
        });
        let wanted: Vec<u64> = (1..=100).collect();
        assert_eq!(*order.lock().unwrap(), wanted);
    });
}

/// A thread computes, and passes its result on through threads that wait in calls which name no
/// time. The clock must not jump to the timeout of the last one.
#[test]
fn work_is_done_before_a_timeout() {
    inside(|| {
        let start = Instant::now();
        // Of more than a few threads, an eBPF program counts the wakeups, as root.
        for threads in [4, 40] {
            let (send, mut receive) = std::sync::mpsc::channel::<u64>();
            for _ in 0..threads {
                let (next, after) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    for value in receive {
                        let sum: u64 = (0..2_000).map(|n| std::hint::black_box(n ^ value)).sum();
                        next.send(sum % 1_000).unwrap();
                    }
                });
                receive = after;
            }
            for _ in 0..200 {
                std::thread::sleep(Duration::from_millis(1));
                send.send(1).unwrap();
                receive.recv_timeout(Duration::from_secs(5)).unwrap();
            }
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    });
}

#[test]
fn pipes_between_processes_are_no_idle_time() {
    let script = "for i in $(seq 50); do
        (echo x | cat | cat | cat) | timeout 3600 cat >/dev/null || exit 1
    done";
    let done = shell(script);
    assert!(done.status.success() && done.passed() < 60.0, "{}", done.err);
}
