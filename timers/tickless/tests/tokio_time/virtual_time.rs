//! Runtimes whose threads have entered a `VirtualTime`.

use crate::{HOUR, message};
use tickless::VirtualTime;
use tickless::tokio_time::{Instant, run_in_virtual_time, sleep};

#[test]
fn a_runtime_of_several_threads_runs_in_virtual_time() {
    for workers in [1, 2, 4] {
        for _ in 0..20 {
            let slept = run_in_virtual_time(workers, |time| async move {
                let begin = time.now();
                let sleeps: Vec<_> = (1..=20)
                    .map(|hours| {
                        let time = time.clone();
                        tokio::spawn(async move {
                            sleep(HOUR * hours).await;
                            let first = time.now() - begin;
                            sleep(HOUR * hours).await;
                            (hours, first, time.now() - begin)
                        })
                    })
                    .collect();
                let mut slept = Vec::new();
                for sleep in sleeps {
                    slept.push(sleep.await.unwrap());
                }
                // The reactor works, too.
                let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
                one.send(b"x").await.unwrap();
                time.outside(async { other.recv(&mut [0]).await.unwrap() }).await;
                slept
            });
            for (hours, first, second) in slept {
                assert_eq!((first, second), (HOUR * hours, HOUR * hours * 2));
            }
        }
    }
}

#[test]
fn timers_of_tokio_fail_the_test() {
    let in_the_test = message(|| {
        run_in_virtual_time(2, |_| async { tokio::time::sleep(HOUR).await });
    });
    let in_a_joined_task = message(|| {
        run_in_virtual_time(2, |_| async {
            tokio::spawn(async { tokio::time::sleep(HOUR).await }).await.unwrap();
        });
    });
    let in_a_task_that_nothing_joins = message(|| {
        run_in_virtual_time(2, |_| async {
            tokio::spawn(async { tokio::time::sleep(HOUR).await });
            sleep(HOUR).await;
        });
    });
    for message in [in_the_test, in_a_joined_task, in_a_task_that_nothing_joins] {
        assert!(message.contains("a timer of tokio's"), "{message}");
    }
    // A panic for another reason is the test's own.
    let own = message(|| run_in_virtual_time(1, |_| async { panic!("timers are not the reason") }));
    assert!(own.contains("not the reason"), "{own}");
}

#[test]
fn clocks_are_entered_and_left() {
    let (one, other) = (VirtualTime::new(), VirtualTime::new());
    other.advance(HOUR);
    let first = one.enter();
    assert_eq!(tickless::time::Instant::from(Instant::now()), one.now());
    let second = other.enter();
    assert_eq!(tickless::time::Instant::from(Instant::now()), other.now());
    drop(first);
    assert_eq!(tickless::time::Instant::from(Instant::now()), other.now());
    drop(second);
    let real = tickless::time::Instant::from(Instant::now());
    assert!(real != one.now() && real != other.now());
}
