//! W6 on the precise queue: random histories against a sorted list.

use crate::support::random::{Rng, with_seeds};
use std::ptr::NonNull;
use tickless_core::link::{QueueLink, QueueRef};
use tickless_core::queues::tree::Queue;
use tickless_core::time::{Ns, Window};

/// Nodes in a boxed slice, so that they do not move.
struct Timers {
    links: Box<[QueueLink]>,
}

impl Timers {
    fn new(count: usize) -> Timers {
        Timers { links: (0..count).map(|_| QueueLink::new()).collect() }
    }

    fn node(&self, index: usize) -> QueueRef {
        // SAFETY: the links outlive every queue of their test and do not move; one thread and one
        // queue at a time uses them.
        unsafe { QueueRef::new(NonNull::from(&self.links[index])) }
    }

    fn index(&self, node: QueueRef) -> usize {
        (node.as_ptr().addr().get() - self.links.as_ptr().addr()) / size_of::<QueueLink>()
    }
}

#[derive(Default)]
struct Twin {
    /// Sorted by hard expiry, then by the number of the insertion.
    pending: Vec<(Window, u64, usize)>,
    inserted: u64,
}

impl Twin {
    fn insert(&mut self, timer: usize, window: Window) -> bool {
        self.remove(timer);
        let window = Window { hard: window.hard.max(window.soft), ..window };
        self.inserted += 1;
        self.pending.push((window, self.inserted, timer));
        self.pending.sort_by_key(|&(window, number, _)| (window.hard, number));
        self.pending[0].2 == timer
    }

    fn remove(&mut self, timer: usize) -> bool {
        let at = self.pending.iter().position(|entry| entry.2 == timer);
        at.map(|at| self.pending.remove(at));
        at == Some(0)
    }

    fn pop_expired(&mut self, now: Ns) -> Option<usize> {
        let may_fire = self.pending.first()?.0.soft <= now;
        may_fire.then(|| self.pending.remove(0).2)
    }

    fn first(&self) -> Option<Window> {
        self.pending.first().map(|entry| entry.0)
    }
}

/// The distribution of a history's operations, which differs with the seed (swarm testing).
struct Mix {
    timers: u64,
    steps: u64,
    /// Expiries are between `base` and `base + span`; a narrow span makes ties.
    base: u64,
    span: u64,
    slack: u64,
    inserts: u64,
    pops: u64,
}

impl Mix {
    fn draw(random: &mut Rng) -> Mix {
        let small = cfg!(miri);
        Mix {
            timers: if small {
                random.pick(&[1, 3, 12])
            } else {
                random.pick(&[1, 2, 3, 8, 30, 120])
            },
            steps: if small { 60 } else { 400 },
            base: random.pick(&[0, 0, 1 << 36, u64::MAX - 4, u64::MAX / 2]),
            span: random.pick(&[1, 4, 50, 1 << 30, u64::MAX]),
            slack: random.pick(&[1, 5, 1 << 20, u64::MAX]),
            inserts: random.pick(&[30, 50, 80]),
            pops: random.pick(&[0, 5, 20]),
        }
    }

    fn time(&self, random: &mut Rng) -> u64 {
        match random.below(40) {
            0 => 0,
            1 => u64::MAX,
            _ => self.base.saturating_add(random.below(self.span)),
        }
    }

    fn window(&self, random: &mut Rng) -> Window {
        let soft = self.time(random);
        let hard = match random.below(30) {
            0 => soft.saturating_sub(1),
            1 => u64::MAX,
            _ => soft.saturating_add(random.below(self.slack)),
        };
        Window { soft: Ns(soft), hard: Ns(hard) }
    }
}

/// Goal: any sequence of operations gives what a sorted list gives (W1, W4, W5, W6, R1).
#[test]
fn queue_histories_match_a_sorted_list() {
    with_seeds(if cfg!(miri) { 25 } else { 4_000 }, history);
}

fn history(seed: u64) {
    let mut random = Rng::new(seed);
    let mix = Mix::draw(&mut random);
    let timers = Timers::new(mix.timers as usize);
    let (mut queue, mut twin) = (Queue::new(), Twin::default());
    for _ in 0..mix.steps {
        let timer = random.below(mix.timers) as usize;
        let node = timers.node(timer);
        let dice = random.below(100);
        if dice < mix.inserts {
            let window = mix.window(&mut random);
            assert_eq!(queue.insert(node, window), twin.insert(timer, window), "first?");
        } else if dice < 100 - mix.pops {
            assert_eq!(queue.remove(node), twin.remove(timer), "was first?");
        } else {
            let now = Ns(mix.time(&mut random));
            for _ in 0..random.below(mix.timers + 2) {
                let popped = queue.pop_expired(now);
                assert_eq!(popped.map(|node| timers.index(node)), twin.pop_expired(now));
                assert!(popped.is_none_or(|node| node.window().soft <= now), "early");
                if popped.is_none() {
                    assert!(queue.first().is_none_or(|first| first.hard > now), "late");
                    break;
                }
            }
        }
        assert_eq!(queue.check(), Ok(()));
        assert_eq!(queue.first(), twin.first());
        assert_eq!((queue.len(), queue.is_empty()), (twin.pending.len(), twin.pending.is_empty()));
        assert_eq!(node.is_linked(), twin.pending.iter().any(|entry| entry.2 == timer));
        let shown = queue.timers().map(|node| (node.window(), timers.index(node)));
        let expected = twin.pending.iter().map(|&(window, _, timer)| (window, timer));
        assert!(expected.eq(shown), "timers");
    }
}
