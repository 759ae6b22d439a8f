//! Ambient deadlines: scopes, and the timeouts and tasks inside of them.

use crate::support::woken::{poll, woken};
use crate::support::{HOUR, MS, Rng, SECOND, rounds, seed};
use async_executor::LocalExecutor;
use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tickless::future::{Elapsed, deadline_scope, now, propagate_deadline, remaining, timeout};
use tickless::time::Instant;
use tickless::{Timers, VirtualTime};

/// Goal: ten nested timeouts cost one timer, and the innermost one returns the ambient deadline.
#[test]
fn nested_timeouts_arm_the_timer_of_their_scope_only() {
    for scopes in [1, 3] {
        let time = VirtualTime::new();
        let (timers, at) = (time.timers(), time.now() + SECOND);
        let mut work: Pin<Box<dyn Future<Output = (u32, Elapsed)>>> = Box::pin(pending());
        for depth in (0..10).rev() {
            let inner = timers.timeout_after(HOUR * (depth + 1), work);
            work = Box::pin(async move { inner.await.unwrap_or_else(|elapsed| (depth, elapsed)) });
        }
        for later in (0..scopes).rev() {
            let scope = timers.deadline_scope(at + HOUR * later, work);
            work = Box::pin(async { scope.await.unwrap() });
        }
        let (depth, elapsed) = time.block_on(work);
        assert_eq!((depth, elapsed.deadline, elapsed.is_ambient), (9, at, true));
        assert_eq!(elapsed.to_string(), "the ambient deadline passed before the work was done");
        assert_eq!((time.now(), timers.stats().total().armed), (at, 1), "{scopes} scopes");
        time.assert_idle();
    }
}

#[test]
fn a_scope_in_an_executor_inside_of_another_has_the_earliest_deadline() {
    let time = VirtualTime::new();
    let timers = time.timers();
    let (_, child) = woken();
    let inner = timers.deadline_scope(time.now() + 2 * SECOND, async { remaining() });
    let mut inner = pin!(inner);
    let outer = poll_fn(|_| poll(inner.as_mut(), &child));
    let outer = timers.deadline_scope(time.now() + SECOND, outer);
    assert_eq!(time.block_on(outer), Ok(Ok(Some(SECOND))));
}

#[test]
fn a_scope_ends_what_does_not_look_at_its_deadline() {
    let time = VirtualTime::new();
    let (timers, at) = (time.timers(), time.now() + SECOND);
    let ended = time.block_on(timers.deadline_scope(at, timers.sleep(HOUR))).unwrap_err();
    assert_eq!((ended.deadline, ended.is_ambient, time.now()), (at, false, at));
    // A loop that retries after each timeout, for which none is ambient, must not spin.
    let tries = Cell::new(0);
    let retries = async {
        while timers.timeout_after(HOUR, pending::<()>()).await.is_err() {
            assert_eq!(remaining(), Some(Duration::ZERO));
            tries.set(tries.get() + 1);
            assert!(tries.get() < 10, "it spins");
        }
    };
    assert!(time.block_on(timers.deadline_scope(at + SECOND, retries)).is_err());
    assert_eq!((tries.get(), time.now()), (1, at + SECOND));
    // A deadline that has passed: what is ready is returned, and what waits ends.
    assert_eq!(time.block_on(timers.deadline_scope(at, ready(5))), Ok(5));
    let waits = timers.timeout_after(HOUR, pending::<()>());
    let ended = time.block_on(timers.deadline_scope(at, waits)).unwrap();
    assert_eq!(ended.map_err(|ended| ended.is_ambient), Err(true));
    // No deadline: arms nothing, and does not hide the scope around it.
    let armed = timers.stats().total().armed;
    let none = async { timers.deadline_scope(Instant::NEVER, async { remaining() }).await };
    assert_eq!(time.block_on(none), Ok(None));
    let none = timers.deadline_scope(Instant::NEVER, async { remaining() });
    let later = time.now() + HOUR;
    assert_eq!(time.block_on(timers.deadline_scope(later, none)), Ok(Ok(Some(HOUR))));
    assert_eq!(timers.stats().total().armed, armed);
}

#[test]
fn a_panic_restores_the_outer_scope() {
    let time = VirtualTime::new();
    let at = |seconds| time.now() + SECOND * seconds;
    let panics = || async { std::panic::panic_any(remaining()) };
    let outer = async {
        let mut inner = pin!(time.timers().deadline_scope(at(1), panics()));
        let payload = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx)));
            Poll::Ready(polled.unwrap_err())
        });
        assert_eq!(payload.await.downcast_ref(), Some(&Some(SECOND)));
        assert_eq!(remaining(), Some(2 * SECOND));
        panics().await;
    };
    let outer = time.timers().deadline_scope(at(2), outer);
    assert!(catch_unwind(AssertUnwindSafe(|| pollster::block_on(outer))).is_err());
    assert_eq!(remaining(), None);
}

/// Goal: a timeout relies on the scope's timer only if that wakes the same task.
#[test]
fn timeouts_that_outlive_their_scope_wake_their_task() {
    let time = VirtualTime::new();
    let timers = time.timers();
    let (scopes, task) = woken();
    let (childs, child) = woken();
    for (waker, armed_inside) in [(&task, 0), (&child, 1)] {
        let mut kept = pin!(timers.timeout_after(2 * SECOND, pending::<()>()));
        let begin = timers.stats().total().armed;
        let at = time.now() + SECOND;
        // An executor in the scope polls with `waker`, and keeps the future.
        let mut scope = Box::pin(timers.deadline_scope(
            at,
            poll_fn(|_| {
                assert!(poll(kept.as_mut(), waker).is_pending());
                Poll::<()>::Pending
            }),
        ));
        assert!(poll(scope.as_mut(), &task).is_pending());
        assert_eq!(timers.stats().total().armed - begin, 1 + armed_inside);
        drop(scope);
        if armed_inside == 0 {
            // The task goes on, and polls it again.
            assert!(poll(kept.as_mut(), waker).is_pending());
        }
        time.advance(2 * SECOND);
        let Poll::Ready(Err(ended)) = poll(kept.as_mut(), waker) else { panic!("it has elapsed") };
        assert_eq!((ended.deadline, ended.is_ambient), (at + SECOND, false));
        // One that has elapsed is ready whenever it is polled, in a scope too.
        let mut scope = pin!(timers.deadline_scope(at, kept));
        assert_eq!(poll(scope.as_mut(), waker), Poll::Ready(Ok(Err(ended))));
        time.assert_idle();
    }
    assert_eq!((scopes.count(), childs.count()), (1, 1));
}

#[test]
fn spawned_tasks_have_the_deadline_if_it_is_propagated() {
    let time = VirtualTime::new();
    let (timers, begin) = (time.timers(), time.now());
    let ends = RefCell::new(Vec::new());
    let end = |name: &'static str, is_ambient: Option<bool>| {
        ends.borrow_mut().push((name, is_ambient, time.now() - begin));
    };
    let executor = LocalExecutor::new();
    let request = async {
        let own = timers.timeout_after(2 * SECOND, pending::<()>());
        let with = propagate_deadline(async {
            let ended = timers.timeout_after(HOUR, pending::<()>()).await;
            end("timeout", ended.err().map(|ended| ended.is_ambient));
            pending::<()>().await;
        });
        executor
            .spawn(async { end("without", own.await.err().map(|end| end.is_ambient)) })
            .detach();
        executor.spawn(async { end("with", with.await.err().map(|end| end.is_ambient)) }).detach();
    };
    let begun = time.block_on(timers.deadline_scope(begin + SECOND, request));
    assert_eq!(begun, Ok(()), "the tasks are not the request's own");
    time.block_on(executor.run(timers.sleep(HOUR)));
    let (one, two) = (SECOND, 2 * SECOND);
    let expected =
        [("timeout", Some(true), one), ("with", Some(true), one), ("without", Some(false), two)];
    assert_eq!(*ends.borrow(), expected);
    time.assert_idle();

    let armed = timers.stats().total().armed;
    let free = propagate_deadline(async { remaining() });
    assert_eq!((time.block_on(free), timers.stats().total().armed), (Ok(None), armed));
}

/// Goal: instants of different clocks are never compared.
#[test]
fn other_clocks_ignore_the_deadline() {
    let (one, other) = (VirtualTime::new(), VirtualTime::new());
    other.advance(HOUR);
    let added = one.add_timers(Timers::builder().bases(1));
    let at = one.now() + SECOND;
    let work = async {
        let foreign = other.timers().timeout_after(MS, pending::<()>());
        let mut foreign = pin!(foreign);
        let polled = poll_fn(|cx| Poll::Ready(foreign.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
        assert_eq!(other.timers().stats().pending(), 1, "it relies on its own timer");
        let hidden = other.timers().deadline_scope(other.now() + MS, async { remaining() });
        assert_eq!((hidden.await, remaining()), (Ok(Some(MS)), Some(SECOND)));
        let real = one.outside(timeout(MS, pending::<()>())).await;
        assert!(real.is_err_and(|ended| !ended.is_ambient));
        let mut reset = pin!(added.coarse_timeout_after(HOUR, pending::<()>()));
        let polled = poll_fn(|cx| Poll::Ready(reset.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
        reset.as_mut().reset(MS);
        assert!(reset.await.is_err_and(|ended| !ended.is_ambient));
        assert_eq!(one.now(), at - SECOND + MS);
        added.coarse_timeout_after(HOUR, pending::<()>()).await
    };
    let ended = one.timers().deadline_scope(at, work);
    assert!(one.block_on(ended).unwrap().unwrap_err().is_ambient);
    assert_eq!((one.now(), added.stats().total().armed), (at, 1));
}

#[test]
fn deadlines_hold_in_real_time_and_on_other_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let begun = std::time::Instant::now();
    let timers = Timers::builder().bases(1).start().unwrap();
    let own = timers.clone();
    let request = async move {
        assert!(remaining().is_some_and(|left| left <= 20 * MS));
        let task = tokio::spawn(propagate_deadline(async move {
            for _ in 0..20 {
                tokio::task::yield_now().await;
                assert!(remaining().is_some());
            }
            // Other timers on the same clock.
            own.timeout_after(HOUR, pending::<()>()).await
        }));
        task.await.unwrap()
    };
    let task = runtime.spawn(deadline_scope(now() + 20 * MS, request));
    // The deadline of the request and that of its task pass together, and either may end it.
    let ended = match runtime.block_on(task).unwrap() {
        Ok(Ok(inner)) => inner.unwrap_err(),
        Ok(Err(ended)) => ended,
        Err(ended) => ended,
    };
    assert!(ended.deadline <= now() && begun.elapsed() >= 20 * MS, "early");
    assert_eq!(timers.stats().total().armed, 0);
    assert_eq!(remaining(), None);
}

/// A random tree of futures, and what it does by the rules of `deadline_scope`.
enum Node {
    Sleep(Duration),
    Timeout(Duration, Box<Node>),
    Scope(Duration, Box<Node>),
    Sequence(Vec<Node>),
    /// The first to end; the other is dropped.
    Either(Box<[Node; 2]>),
}

type Events = Vec<(Duration, bool)>;

impl Node {
    fn draw(rng: &mut Rng, depth: u32) -> Node {
        let after = Duration::from_nanos(1 + rng.below(1 << 30));
        let child = |rng: &mut Rng| Box::new(Node::draw(rng, depth - 1));
        match if depth == 0 { 0 } else { rng.below(7) } {
            0 => Node::Sleep(after),
            1 | 2 => Node::Timeout(after, child(rng)),
            3 | 4 => Node::Scope(after, child(rng)),
            5 => Node::Sequence((0..3).map(|_| *child(rng)).collect()),
            _ => Node::Either(Box::new([*child(rng), *child(rng)])),
        }
    }

    /// Returns when this ends if it begins at `now` under a deadline, and notes when each timeout
    /// and scope ended, and whether in time. `None`: it waits until it is dropped.
    fn expected(&self, now: Duration, deadline: Duration, log: &mut Events) -> Option<Duration> {
        match self {
            Node::Sleep(after) => Some(now + *after).filter(|end| *end < deadline),
            Node::Sequence(all) => {
                all.iter().try_fold(now, |now, child| child.expected(now, deadline, log))
            }
            Node::Either(both) => {
                let mut logs = [Events::new(), Events::new()];
                let [a, b] = [0, 1].map(|i| both[i].expected(now, deadline, &mut logs[i]));
                let end = a.into_iter().chain(b).min();
                // The first is polled first.
                let a_wins = a.is_some() && a == end;
                let [first, second] = logs;
                log.extend(first.into_iter().filter(|(at, _)| end.is_none_or(|end| *at <= end)));
                let is_in_time = |at| end.is_none_or(|end| at < end || !a_wins && at == end);
                log.extend(second.into_iter().filter(|(at, _)| is_in_time(*at)));
                end
            }
            Node::Timeout(after, child) | Node::Scope(after, child) => {
                let own = now + *after;
                let is_scope = matches!(self, Node::Scope(..));
                let within = if is_scope { own.min(deadline) } else { deadline };
                let mut inner = Events::new();
                let end = child.expected(now, within, &mut inner);
                let in_time = end.filter(|end| *end <= own);
                // One that begins when the deadline has passed stays pending.
                let ended = (now < deadline).then_some(own.min(deadline));
                let end = in_time.or(ended);
                inner.retain(|(at, _)| end.is_none_or(|end| *at <= end));
                log.extend(inner);
                log.extend(end.map(|end| (end, in_time.is_some())));
                end
            }
        }
    }

    async fn run(&self, time: &VirtualTime, log: &RefCell<Events>) {
        let timers = time.timers();
        let note = |ok| log.borrow_mut().push((time.now() - Instant::ZERO, ok));
        let child =
            |child| -> Pin<Box<dyn Future<Output = ()>>> { Box::pin(Node::run(child, time, log)) };
        match self {
            Node::Sleep(after) => timers.sleep(*after).slack(Duration::ZERO).await,
            Node::Timeout(after, inner) => {
                note(timers.timeout_after(*after, child(inner)).await.is_ok());
            }
            Node::Scope(after, inner) => {
                note(timers.deadline_scope(time.now() + *after, child(inner)).await.is_ok());
            }
            Node::Sequence(all) => {
                for inner in all {
                    child(inner).await;
                }
            }
            Node::Either(both) => {
                let mut both = [child(&both[0]), child(&both[1])];
                poll_fn(|cx| {
                    let is_ready = both.iter_mut().any(|one| one.as_mut().poll(cx).is_ready());
                    if is_ready { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        }
    }
}

/// Goal: timeouts and scopes end at their times in any nesting, also around futures that are
/// dropped, and leave nothing pending.
#[test]
fn random_trees_end_as_the_rules_say() {
    let mut rng = Rng::new(seed("deadlines", "random_trees_end_as_the_rules_say"));
    for _ in 0..rounds(20_000) {
        let depth = 1 + rng.below(6) as u32;
        let tree = Node::Scope(
            Duration::from_nanos(rng.below(1 << 32)),
            Box::new(Node::draw(&mut rng, depth)),
        );
        let time = VirtualTime::with_builder(Timers::builder().bases(1), Instant::ZERO);
        let (log, mut expected) = (RefCell::new(Events::new()), Events::new());
        tree.expected(Duration::ZERO, Duration::MAX, &mut expected);
        time.block_on(tree.run(&time, &log));
        let mut log = log.into_inner();
        log.sort();
        expected.sort();
        assert_eq!(log, expected);
        assert_eq!(remaining(), None);
        time.assert_idle();
    }
}
