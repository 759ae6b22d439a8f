//! Each fault is found in timers that have it, and none in timers that have none.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tickless_conformance::{
    Cancel, Effort, NextEvent, Order, Report, Rounding, Timers, Verdict, check,
};

/// What is wrong with [`Sorted`].
const NOTHING: u8 = 0;
const EARLY: u8 = 1;
const LATE: u8 = 2;
const LOSES_FAR: u8 = 3;
const TWICE: u8 = 4;
const KEEPS_CANCELLED: u8 = 5;
const REVERSED: u8 = 6;
const CANCEL_LIES: u8 = 7;
const HIDES_EARLIER: u8 = 8;
const WAKES_FOR_NOTHING: u8 = 9;
const STUCK: u8 = 10;
const PANICS: u8 = 11;
const HANGS: u8 = 12;
const GROWS: u8 = 13;

#[derive(Default)]
struct Sorted<const FAULT: u8> {
    deadlines: BTreeSet<(u64, u32)>,
    of_keys: HashMap<u32, u64>,
    now: u64,
    first_armed: Option<u64>,
    garbage: Vec<u64>,
}

impl<const FAULT: u8> Sorted<FAULT> {
    fn remove(&mut self, key: u32) -> bool {
        let deadline = self.of_keys.remove(&key);
        deadline.is_some_and(|deadline| self.deadlines.remove(&(deadline, key)))
    }
}

impl<const FAULT: u8> Timers for Sorted<FAULT> {
    const NAME: &str = "a sorted map";
    const NEXT_EVENT: NextEvent = NextEvent::Exact;
    const ORDER: Order = Order::Deadline;
    const REENTRANT: bool = true;
    const ARM_REPLACES: bool = true;

    fn new() -> Self {
        Sorted::default()
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.remove(key);
        if FAULT == LOSES_FAR && deadline > self.now + 70_000 {
            return;
        }
        if FAULT == PANICS && deadline % 257 == 256 {
            panic!("a bucket that does not exist");
        }
        if FAULT == GROWS {
            self.garbage.push(deadline);
        }
        self.first_armed.get_or_insert(deadline);
        self.of_keys.insert(key, deadline);
        self.deadlines.insert((deadline, key));
    }

    fn cancel(&mut self, key: u32) -> bool {
        match FAULT {
            KEEPS_CANCELLED => self.of_keys.contains_key(&key),
            CANCEL_LIES => self.remove(key) || key == 3,
            _ => self.remove(key),
        }
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Self, u32)) {
        self.now = now;
        let due = match FAULT {
            EARLY => now + 1,
            LATE => now.saturating_sub(3),
            _ => now,
        };
        if FAULT == HANGS && now > 1_000_000 {
            std::thread::sleep(Duration::from_secs(3_600));
        }
        if FAULT == STUCK && self.deadlines.len() > 2 && now > 0 {
            return;
        }
        let next = |timers: &Self| {
            let due = |&&(deadline, _): &&(u64, u32)| deadline <= due;
            let keys = &timers.deadlines;
            let last = || keys.iter().rfind(due);
            if FAULT == REVERSED { last() } else { keys.first().filter(due) }.copied()
        };
        while let Some((deadline, key)) = next(self) {
            self.remove(key);
            fire(self, key);
            if FAULT == TWICE && deadline % 64 == 0 {
                fire(self, key);
            }
        }
    }

    fn next_event(&mut self) -> Option<u64> {
        let first = self.deadlines.first().map(|first| first.0);
        match FAULT {
            HIDES_EARLIER => first.and(self.first_armed.max(first)),
            WAKES_FOR_NOTHING => first.or(self.first_armed),
            STUCK => first.map(|first| first.min(self.now)),
            _ => first,
        }
    }
}

fn report<const FAULT: u8>() -> Report {
    check::<Sorted<FAULT>>(Effort {
        histories: 400,
        limit: if FAULT == HANGS { Duration::from_millis(200) } else { Duration::from_secs(60) },
        measure: FAULT == NOTHING || FAULT == GROWS,
        ..Effort::default()
    })
}

/// The names of the faults in a report, and the shortest test.
fn faults(report: &Report) -> (BTreeSet<String>, String) {
    let broken = report.checks.iter().filter_map(|checked| match &checked.verdict {
        Verdict::Broken { fault, test, .. } => {
            let name: String = format!("{fault:?}").split(' ').take(1).collect();
            Some((name, test.clone()))
        }
        _ => None,
    });
    let (names, tests): (BTreeSet<_>, Vec<_>) = broken.unzip();
    (names, tests.into_iter().min_by_key(String::len).unwrap_or_default())
}

#[test]
fn timers_without_faults_are_clean() {
    let report = report::<NOTHING>();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.measured.expect("it was measured").lateness_ns, 0);
    assert!(report.to_json().expect("it has only numbers").contains("random histories"));
}

#[test]
fn each_fault_is_found_and_named() {
    for (report, names) in [
        (report::<EARLY>(), &["Early"][..]),
        (report::<LATE>(), &["Late"]),
        (report::<LOSES_FAR>(), &["Lost"]),
        (report::<TWICE>(), &["NotPending"]),
        (report::<KEEPS_CANCELLED>(), &["NotPending"]),
        (report::<REVERSED>(), &["OutOfOrder"]),
        (report::<CANCEL_LIES>(), &["CancelResult"]),
        (report::<HIDES_EARLIER>(), &["NextEventLate"]),
        (report::<WAKES_FOR_NOTHING>(), &["NextEventForNothing"]),
        (report::<STUCK>(), &["Stuck", "Lost", "NextEventForNothing"]),
        (report::<PANICS>(), &["Panicked"]),
        (report::<HANGS>(), &["Hung"]),
    ] {
        let (found, _) = faults(&report);
        let is_one = |name: &String| names.contains(&name.as_str());
        assert!(found.iter().any(is_one), "none of {names:?} is among {found:?}");
    }
}

#[test]
fn failing_histories_are_short_and_printed_as_tests() {
    let (_, test) = faults(&report::<HIDES_EARLIER>());
    assert!(test.lines().count() <= 8, "{test}");
    let arms = test.matches("timers.arm(").count();
    assert_eq!(arms, 2, "a later timer and an earlier one:\n{test}");
    assert!(test.contains("timers.next_event().is_some_and("), "{test}");
    // Times are shortened to the limit of the fault.
    let (_, test) = faults(&report::<LOSES_FAR>());
    assert!(test.contains(", 70001);"), "{test}");
}

#[test]
fn growth_under_churn_is_measured() {
    let growth = |report: Report| report.measured.expect("it was measured").growth_bytes;
    let (none, grows) = (growth(report::<NOTHING>()), growth(report::<GROWS>()));
    assert!(grows > none + 1_000_000, "{grows} bytes beside {none}");
}

/// Timers that promise little are held to little.
struct Coarse(Vec<(u32, u64)>);

impl Timers for Coarse {
    const NAME: &str = "a list that is looked at every millisecond";
    const GRANULARITY: u64 = 1_000_000;
    const ROUNDING: Rounding = Rounding::Down;
    const CANCEL: Cancel = Cancel::None;
    const ARM_REPLACES: bool = true;

    fn new() -> Coarse {
        Coarse(Vec::new())
    }

    fn arm(&mut self, key: u32, deadline: u64) {
        self.0.retain(|&(other, _)| other != key);
        self.0.push((key, deadline / 1_000_000));
    }

    fn push_out(&mut self, key: u32, deadline: u64) {
        self.arm(key, deadline);
    }

    fn cancel(&mut self, _: u32) -> bool {
        unreachable!("no cancel is promised")
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(&mut Coarse, u32)) {
        let due = self.0.extract_if(.., |&mut (_, tick)| tick <= now / 1_000_000);
        for (key, _) in due.collect::<Vec<_>>() {
            fire(self, key);
        }
    }
}

#[test]
fn timers_are_held_to_their_promises_only() {
    let report = check::<Coarse>(Effort { histories: 300, measure: false, ..Effort::default() });
    assert!(report.is_clean(), "{report}");
    let not_offered = |name: &str| {
        let found = report.checks.iter().find(|checked| checked.check == name);
        found.expect("a check of that name").verdict == Verdict::NotOffered
    };
    assert!(not_offered("cancel inside a callback"));
    assert!(not_offered("far deadlines"));
}
