//! Runs a random program and records what each of its tasks sees, and when.

use super::time::{self, Instant, MissedTickBehavior};
use crate::Event;
use crate::program::{Program, Step};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;

#[derive(Clone)]
struct Task {
    name: String,
    begin: Instant,
    seen: Arc<Mutex<Vec<Event>>>,
}

pub async fn run(program: Program) -> Vec<Event> {
    let seen = Arc::default();
    let task = Task { name: String::new(), begin: Instant::now(), seen: Arc::clone(&seen) };
    task.run(program).await;
    std::mem::take(&mut *seen.lock().unwrap())
}

impl Task {
    fn saw(&self, what: impl Into<String>) {
        let event = (self.name.clone(), what.into(), self.begin.elapsed());
        self.seen.lock().unwrap().push(event);
    }

    /// Runs a part of the program, whose name is that of this task and the step's number.
    fn part(
        &self,
        step: usize,
        which: &str,
        program: &Program,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let part = Task { name: format!("{}/{step}{which}", self.name), ..self.clone() };
        Box::pin(part.run(Arc::clone(program)))
    }

    async fn run(self, program: Program) {
        let mut spawned = Vec::new();
        for (nth, step) in program.iter().enumerate() {
            match step {
                Step::Sleep(after) => time::sleep(*after).await,
                Step::SleepUntil(at) => time::sleep_until(self.begin + *at).await,
                Step::Reset(first, pause, then) => {
                    let mut sleep = pin!(time::sleep(*first));
                    poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_ready())).await;
                    time::sleep(*pause).await;
                    sleep.as_mut().reset(Instant::now() + *then);
                    assert!(!sleep.is_elapsed());
                    sleep.await;
                }
                Step::Timeout(after, inner) => {
                    let ended = time::timeout(*after, self.part(nth, "", inner)).await;
                    self.saw(format!("{nth}: {ended:?}"));
                }
                Step::TimeoutAt(at, inner) => {
                    let ended = time::timeout_at(self.begin + *at, self.part(nth, "", inner)).await;
                    self.saw(format!("{nth}: {ended:?}"));
                }
                Step::Ticks { start, period, behavior, pauses, reset } => {
                    let mut ticks = time::interval_at(Instant::now() + *start, *period);
                    assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::default());
                    let behavior = match behavior {
                        0 => MissedTickBehavior::Burst,
                        1 => MissedTickBehavior::Delay,
                        _ => MissedTickBehavior::Skip,
                    };
                    ticks.set_missed_tick_behavior(behavior);
                    assert_eq!((ticks.missed_tick_behavior(), ticks.period()), (behavior, *period));
                    for (tick, pause) in pauses.iter().enumerate() {
                        let due = ticks.tick().await - self.begin;
                        self.saw(format!("{nth}: tick {due:?}"));
                        time::sleep(*pause).await;
                        match reset {
                            _ if tick != 1 => {}
                            0 => ticks.reset(),
                            1 => ticks.reset_immediately(),
                            2 => ticks.reset_after(*start),
                            3 => ticks.reset_at(Instant::now() + *start),
                            _ => {}
                        }
                    }
                }
                Step::Select(one, other) => tokio::select! {
                    biased;
                    () = self.part(nth, "a", one) => self.saw(format!("{nth}: a")),
                    () = self.part(nth, "b", other) => self.saw(format!("{nth}: b")),
                },
                Step::Spawn(inner) => spawned.push(tokio::spawn(self.part(nth, "", inner))),
                Step::Advance(by) => time::advance(*by).await,
                Step::Yield => tokio::task::yield_now().await,
            }
            self.saw(format!("{nth}"));
        }
        for task in spawned {
            task.await.unwrap();
            self.saw("joined");
        }
    }
}
