//! Runtimes whose threads have entered a `VirtualTime`.

use crate::{HOUR, current_thread, message, ms};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
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

/// How far the clock moves while `work` runs in a task, beside tasks with pending timers.
fn moved_during<F>(workers: usize, work: impl FnOnce(VirtualTime) -> F + Send + 'static) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    run_in_virtual_time(workers, |time| async move {
        for seconds in 1..=20 {
            tokio::spawn(async move { sleep(Duration::from_secs(seconds)).await });
        }
        let begin = Instant::now();
        tokio::spawn(work(time)).await.unwrap();
        let moved = begin.elapsed();
        sleep(HOUR).await;
        assert_eq!(begin.elapsed(), moved + HOUR, "the clock goes on");
        moved
    })
}

fn works_for_30_ms() {
    std::thread::sleep(ms(30));
}

#[test]
fn the_clock_stands_while_a_thread_of_the_runtime_works() {
    use tokio::task::{block_in_place, spawn_blocking};
    for workers in [1, 2] {
        for _ in 0..5 {
            let moved = [
                moved_during(workers, |_| async { block_in_place(works_for_30_ms) }),
                moved_during(workers, |_| async {
                    block_in_place(works_for_30_ms);
                    works_for_30_ms(); // On a thread that is no worker any more.
                }),
                moved_during(workers, |_| async {
                    spawn_blocking(works_for_30_ms).await.unwrap();
                    let many = [(); 4].map(|()| spawn_blocking(works_for_30_ms));
                    for blocking in many {
                        blocking.await.unwrap();
                    }
                }),
                moved_during(workers, move |_| async move {
                    let work = async { tokio::time::sleep(ms(30)).await };
                    spawn_blocking(move || current_thread().block_on(work)).await.unwrap();
                }),
                moved_during(workers, |time| async move {
                    let (_busy, thread) = (time.busy(), std::thread::spawn(works_for_30_ms));
                    tokio::task::yield_now().await;
                    block_in_place(|| thread.join().unwrap());
                }),
                moved_during(workers, |_| async {
                    // A lock that a thread holds of which the clock does not know.
                    let (lock, (held, is_held)) = (Arc::new(Mutex::new(())), channel());
                    let other = Arc::clone(&lock);
                    std::thread::spawn(move || {
                        let _holds = other.lock();
                        held.send(()).unwrap();
                        works_for_30_ms();
                    });
                    is_held.recv().unwrap();
                    drop(lock.lock());
                }),
            ];
            assert_eq!(moved, [Duration::ZERO; 6], "{workers} workers");
        }
    }
}

/// A blocking closure that waits for the clock lets it advance, and sees its own deadlines.
#[test]
fn blocking_closures_wait_for_the_clock() {
    use tokio::task::{block_in_place, spawn_blocking};
    for _ in 0..20 {
        let seen = run_in_virtual_time(2, |time| async move {
            let begin = Instant::now();
            tokio::spawn(async { sleep(HOUR / 2).await });
            let (first, second) = (time.clone(), time.clone());
            let blocking = spawn_blocking(move || {
                first.block_on(sleep(HOUR));
                let slept = begin.elapsed();
                first.busy().sleep(HOUR);
                (slept, begin.elapsed())
            });
            block_in_place(|| second.block_on(sleep(HOUR / 4)));
            (begin.elapsed(), blocking.await.unwrap())
        });
        assert_eq!(seen, (HOUR / 4, (HOUR, 2 * HOUR)));
    }
}
