//! `tickless::local::future` inside of compio, glommio and monoio, by their public interfaces.
//!
//! `cargo run --features runtimes --example thread_per_core` in `timers/bench`.

use async_executor::LocalExecutor;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;
use tickless::local::Clock;
use tickless::local::future::{Handle, Sleeps};
use tickless::time::Instant;

const TASKS: u64 = 1_000;

fn now() -> Instant {
    static BEGUN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    Instant::from_secs(1) + BEGUN.elapsed()
}

async fn task(timers: Handle, nth: u64) {
    let patience = Duration::from_micros(500 + nth * 7_919 % 20_000);
    let begun = timers.now();
    assert!(timers.timeout(patience, std::future::pending::<()>()).await.is_err());
    timers.sleep(patience).await;
    assert!(timers.now() - begun >= 2 * patience, "never early");
}

/// compio: its loop has a public interface, so that tasks of its own use these sleeps.
fn in_compio() -> std::io::Result<()> {
    let runtime = compio_runtime::Runtime::new()?;
    let sleeps = Sleeps::new(Clock::new(now));
    let left = Rc::new(RefCell::new(TASKS));
    runtime.enter(|| {
        for nth in 0..TASKS {
            let (left, timers) = (Rc::clone(&left), sleeps.handle());
            let spawned = runtime.spawn(async move {
                task(timers, nth).await;
                *left.borrow_mut() -= 1;
            });
            spawned.detach();
        }
        while *left.borrow() > 0 {
            let is_busy = runtime.run();
            let ours = sleeps.next_event().map(|next| next - now());
            let next = ours.into_iter().chain(runtime.current_timeout()).min();
            runtime.poll_with(if is_busy { Some(Duration::ZERO) } else { next });
            sleeps.advance(now());
        }
    });
    Ok(())
}

/// glommio and monoio: an executor inside of one of their tasks, with one timer of theirs. The
/// executor's tasks can use their sockets and files.
async fn inside<S: Future<Output = ()>>(sleep: impl Fn(Duration) -> S) {
    let sleeps = Sleeps::new(Clock::new(now));
    let executor = LocalExecutor::new();
    let tasks: Vec<_> = (0..TASKS).map(|nth| executor.spawn(task(sleeps.handle(), nth))).collect();
    let main = executor.run(async {
        for task in tasks {
            task.await;
        }
    });
    sleeps.drive(main, now, |deadline| sleep(deadline - now())).await;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    in_compio()?;
    println!("compio: {TASKS} tasks");
    let builder = monoio::RuntimeBuilder::<monoio::FusionDriver>::new().enable_timer();
    builder.build()?.block_on(inside(monoio::time::sleep));
    println!("monoio: {TASKS} tasks");
    match glommio::LocalExecutorBuilder::new(glommio::Placement::Unbound).make() {
        Ok(executor) => {
            executor
                .run(inside(|after| async move { _ = glommio::timer::Timer::new(after).await }));
            println!("glommio: {TASKS} tasks");
        }
        Err(refused) => println!("glommio: io_uring is refused ({refused})"),
    }
    Ok(())
}
