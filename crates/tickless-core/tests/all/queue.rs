//! The precise queue against a naive twin: a list that is kept sorted (W6), and the rest of
//! what the queue promises, one test each.
//!
//! A failing history prints the command that replays it.

use std::ptr::NonNull;

use tickless_core::link::{QueueLink, QueueRef};
use tickless_core::queues::tree::Queue;
use tickless_core::time::{Ns, Window};

/// Timers that live long enough: boxed in one slice, so that none of them ever moves.
struct Timers {
    links: Box<[QueueLink]>,
}

impl Timers {
    fn new(count: usize) -> Timers {
        Timers { links: (0..count).map(|_| QueueLink::new()).collect() }
    }

    fn node(&self, index: usize) -> QueueRef {
        // SAFETY: the links outlive every queue of their test, never move, are touched by
        // one thread and by one queue at a time.
        unsafe { QueueRef::new(NonNull::from(&self.links[index])) }
    }

    fn index(&self, node: QueueRef) -> usize {
        (node.as_ptr().addr().get() - self.links.as_ptr().addr()) / size_of::<QueueLink>()
    }
}

fn window(soft: u64, hard: u64) -> Window {
    Window { soft: Ns(soft), hard: Ns(hard) }
}

fn exact(at: u64) -> Window {
    window(at, at)
}

/// Pops everything that may fire at `now`; the timers' indices in the order they came.
fn fire(queue: &mut Queue, timers: &Timers, now: u64) -> Vec<usize> {
    let popped = std::iter::from_fn(|| queue.pop_expired(Ns(now))).take(timers.links.len() + 1);
    popped.map(|node| timers.index(node)).collect()
}

/// Xorshift: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn seeded(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Runs `history` for seeds 1 to `count`, or for `TICKLESS_SEED` alone where that is set.
fn for_seeds(test: &'static str, count: u64, history: impl Fn(u64)) {
    struct Replay(&'static str, u64);
    impl Drop for Replay {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let Replay(test, seed) = self;
                eprintln!("replay: TICKLESS_SEED={seed} cargo test -p tickless-core {test}");
            }
        }
    }
    let replay = std::env::var("TICKLESS_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in replay.map_or(1..=count, |seed| seed..=seed) {
        let _replay = Replay(test, seed);
        history(seed);
    }
}

/// What a queue is, said so simply that it is evidently right.
#[derive(Default)]
struct Twin {
    /// Sorted by hard expiry, then by when it came.
    pending: Vec<(Window, u64, usize)>,
    came: u64,
}

impl Twin {
    fn insert(&mut self, timer: usize, window: Window) -> bool {
        self.remove(timer);
        let window = Window { hard: window.hard.max(window.soft), ..window };
        self.came += 1;
        self.pending.push((window, self.came, timer));
        self.pending.sort_by_key(|&(window, came, _)| (window.hard, came));
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

/// How one history draws its numbers: each seed mixes differently (swarm).
struct Mix {
    timers: u64,
    steps: u64,
    /// Expiries come from `base` to `base + span`; a narrow span makes ties.
    base: u64,
    span: u64,
    slack: u64,
    inserts: u64,
    pops: u64,
}

impl Mix {
    fn draw(random: &mut Random) -> Mix {
        let pick =
            |random: &mut Random, from: &[u64]| from[random.below(from.len() as u64) as usize];
        let small = cfg!(miri);
        Mix {
            timers: pick(random, if small { &[1, 3, 12] } else { &[1, 2, 3, 8, 30, 120] }),
            steps: if small { 60 } else { 400 },
            base: pick(random, &[0, 0, 1 << 36, u64::MAX - 4, u64::MAX / 2]),
            span: pick(random, &[1, 4, 50, 1 << 30, u64::MAX]),
            slack: pick(random, &[1, 5, 1 << 20, u64::MAX]),
            inserts: pick(random, &[30, 50, 80]),
            pops: pick(random, &[0, 5, 20]),
        }
    }

    fn time(&self, random: &mut Random) -> u64 {
        match random.below(40) {
            0 => 0,
            1 => u64::MAX,
            _ => self.base.saturating_add(random.below(self.span)),
        }
    }

    fn window(&self, random: &mut Random) -> Window {
        let soft = self.time(random);
        let hard = match random.below(30) {
            0 => soft.saturating_sub(1),
            1 => u64::MAX,
            _ => soft.saturating_add(random.below(self.slack)),
        };
        window(soft, hard)
    }
}

/// Goal: any sequence of operations gives what a sorted list gives (W1, W4, W5, W6, R1).
/// Method: seeded histories of inserts, moves, removals and pops; everything that can be
/// seen is compared with the twin, and the full check runs, after every step.
#[test]
fn queue_histories_match_a_sorted_list() {
    for_seeds("queue_histories_match_a_sorted_list", if cfg!(miri) { 25 } else { 4_000 }, history);
}

fn history(seed: u64) {
    let mut random = Random::seeded(seed);
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
        let mut shown = Vec::new();
        queue.for_each(|node| shown.push((node.window(), timers.index(node))));
        let expected = twin.pending.iter().map(|&(window, _, timer)| (window, timer));
        assert!(expected.eq(shown), "for_each");
    }
}

/// Goal: the balance holds in trees deep enough for every case of it.
/// Method: fill in rising, falling and shuffled order, empty from the front, from the back
/// and in shuffled order; full check after every step.
#[test]
fn queue_stays_balanced_however_it_is_filled_and_emptied() {
    let count = if cfg!(miri) { 24 } else { 500 };
    let mut random = Random::seeded(7);
    let mut shuffled: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        shuffled.swap(at, random.below(at as u64 + 1) as usize);
    }
    let orders = [(0..count).collect(), (0..count).rev().collect(), shuffled];
    for (fill, empty) in
        orders.iter().flat_map(|fill| orders.iter().map(move |empty| (fill, empty)))
    {
        let timers = Timers::new(count);
        let mut queue = Queue::new();
        for &timer in fill {
            queue.insert(timers.node(timer), exact(timer as u64));
            assert_eq!(queue.check(), Ok(()));
        }
        for &timer in empty {
            queue.remove(timers.node(timer));
            assert_eq!(queue.check(), Ok(()));
        }
        assert!(queue.is_empty());
    }
}

/// W4, also across moves: a re-armed timer goes behind those that stayed.
#[test]
fn queue_fires_equal_expiries_in_the_order_armed() {
    let timers = Timers::new(22);
    let mut queue = Queue::new();
    for timer in 0..20 {
        assert_eq!(queue.insert(timers.node(timer), exact(100)), timer == 0);
        if timer == 10 {
            // With others before and after, ties are no longer found at the ends.
            queue.insert(timers.node(20), exact(99));
            queue.insert(timers.node(21), exact(101));
        }
    }
    assert!(!queue.remove(timers.node(0)));
    assert!(!queue.insert(timers.node(0), exact(100)));
    assert!(!queue.insert(timers.node(5), exact(100)), "moved while queued");
    let mut order = vec![20];
    order.extend((1..20).filter(|&timer| timer != 5));
    order.extend([0, 5, 21]);
    assert_eq!(fire(&mut queue, &timers, 101), order);
}

/// W1: not a nanosecond before the soft expiry, and at the hard expiry at the latest.
#[test]
fn queue_fires_from_soft_expiry_on() {
    let timers = Timers::new(1);
    let mut queue = Queue::new();
    queue.insert(timers.node(0), window(1_000, 5_000));
    assert_eq!(queue.first(), Some(window(1_000, 5_000)));
    assert_eq!(fire(&mut queue, &timers, 999), []);
    assert_eq!(fire(&mut queue, &timers, 1_000), [0]);
    assert!(!timers.node(0).is_linked());
}

/// The walk goes by hard expiry and stops at the first timer that may not fire yet.
#[test]
fn queue_stops_at_the_first_timer_still_ahead() {
    let timers = Timers::new(3);
    let mut queue = Queue::new();
    queue.insert(timers.node(0), window(0, 100));
    queue.insert(timers.node(1), exact(200));
    queue.insert(timers.node(2), window(0, 300));
    assert_eq!(fire(&mut queue, &timers, 100), [0]);
    assert_eq!(queue.first(), Some(exact(200)));
    assert_eq!(fire(&mut queue, &timers, 200), [1, 2]);
}

/// W5: the ends of the range are ordinary times.
#[test]
fn queue_takes_the_ends_of_the_range_as_ordinary_times() {
    let timers = Timers::new(4);
    let mut queue = Queue::new();
    assert!(queue.insert(timers.node(0), Window::new(Ns::NEVER, Ns::NEVER)));
    assert!(queue.insert(timers.node(1), window(u64::MAX - 1, u64::MAX - 1)));
    assert!(queue.insert(timers.node(2), exact(0)));
    assert!(!queue.insert(timers.node(3), window(0, u64::MAX)));
    assert_eq!(queue.check(), Ok(()));
    assert_eq!(fire(&mut queue, &timers, 0), [2]);
    assert_eq!(fire(&mut queue, &timers, u64::MAX - 2), []);
    assert_eq!(fire(&mut queue, &timers, u64::MAX - 1), [1]);
    assert_eq!(fire(&mut queue, &timers, u64::MAX), [0, 3]);
}

/// A window that contradicts itself opens late rather than early, wherever it comes from.
#[test]
fn queue_clamps_hard_up_to_soft() {
    assert_eq!(Window::new(Ns(9), Ns(4)), window(9, 9));
    assert_eq!(Window::new(Ns(4), Ns(9)), window(4, 9));
    let timers = Timers::new(1);
    let mut queue = Queue::new();
    queue.insert(timers.node(0), window(9, 4));
    assert_eq!(queue.first(), Some(exact(9)));
}

/// R2 and R4 rest on this: only the first counts for the device.
#[test]
fn queue_says_when_the_first_changes() {
    let timers = Timers::new(3);
    let mut queue = Queue::new();
    assert!(queue.insert(timers.node(0), exact(50)));
    assert!(!queue.insert(timers.node(1), exact(60)));
    assert!(!queue.insert(timers.node(2), exact(50)), "a tie does not displace the first");
    assert!(!queue.remove(timers.node(1)));
    assert!(!queue.remove(timers.node(1)), "not queued any more");
    assert!(queue.insert(timers.node(1), exact(49)));
    assert!(!queue.insert(timers.node(1), exact(70)), "moved off the first place");
    assert!(queue.remove(timers.node(0)));
    assert_eq!(queue.first(), Some(exact(50)));
}

/// The nodes do not point at the queue.
#[test]
fn queue_may_be_moved_while_timers_are_in_it() {
    let timers = Timers::new(8);
    let mut queue = Queue::new();
    for timer in 0..8 {
        queue.insert(timers.node(timer), exact(timer as u64));
    }
    let mut elsewhere = Box::new(std::mem::take(&mut queue));
    assert!(queue.is_empty());
    assert_eq!(elsewhere.check(), Ok(()));
    assert_eq!(fire(&mut elsewhere, &timers, 9), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Goal: what the walk holds back behind a timer that is still ahead costs no wakeup.
/// Method: timers of mixed slack, none cancelled; wake at the smallest hard expiry, and count
/// the wakeups of this queue and of a list that fires everything whose soft expiry passed.
#[test]
fn queue_holding_back_costs_no_wakeup() {
    let count = if cfg!(miri) { 30 } else { 300 };
    for_seeds("queue_holding_back_costs_no_wakeup", if cfg!(miri) { 2 } else { 50 }, |seed| {
        let mut random = Random::seeded(seed);
        let timers = Timers::new(count);
        let mut queue = Queue::new();
        let mut list = Vec::new();
        for timer in 0..count {
            let soft = random.below(10_000);
            let slack = [0, 50, soft / 10, 3_000][random.below(4) as usize];
            queue.insert(timers.node(timer), window(soft, soft + slack));
            list.push((soft, soft + slack));
        }
        let mut wakeups = Vec::new();
        while let Some(Window { hard: Ns(now), .. }) = queue.first() {
            wakeups.push(now);
            assert!(!fire(&mut queue, &timers, now).is_empty(), "a wakeup for nothing");
            assert!(wakeups.len() <= count, "fired what is not queued");
        }
        let mut wakeups_of_list = Vec::new();
        while let Some(now) = list.iter().map(|&(_, hard)| hard).min() {
            wakeups_of_list.push(now);
            list.retain(|&(soft, _)| soft > now);
        }
        assert_eq!(wakeups, wakeups_of_list);
    });
}
