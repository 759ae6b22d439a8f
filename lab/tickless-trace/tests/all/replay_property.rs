//! Random histories: a small kernel makes traces, and the replay must reproduce what it did.
//!
//! The kernel here is simple and shares nothing with the core: pending timers are in a Vec that is
//! searched, and a device is a number. It has the policy of Linux 5.15 to 7.0 (a cancel of the
//! first timer programs the device, a restart is one operation, another CPU's device is not
//! programmed), and prints what Linux would print.

use crate::support::{all, fired, replay, spurious, wakeups, writes};
use crate::trace_damage::seeded;
use proptest::prelude::*;
use std::fmt::Write;

const NEVER: u64 = u64::MAX;
const TIMERS: usize = 6;
const CPUS: usize = 3;
/// The numbers of these CPUs in the trace, of a machine with hundreds of CPUs.
const NUMBERS: [usize; CPUS] = [0, 99, 479];
/// Deadlines are multiples of this, which is longer than interrupts are late: no trace shows for
/// which of two closer deadlines an interrupt was.
const GRID_NS: u64 = 40_000;

#[derive(Clone, Copy, Debug)]
enum Action {
    /// A CPU arms a timer so many nanoseconds from now; a past deadline is negative.
    Start(usize, usize, i64),
    /// A CPU cancels a timer.
    Cancel(usize, usize),
    /// So many nanoseconds pass.
    Pass(u64),
    /// Sets the restart that the timer's callback asks for, or none.
    Period(usize, Option<u64>),
}

fn action() -> impl Strategy<Value = Action> {
    let (cpu, timer) = (0..CPUS, 0..TIMERS);
    prop_oneof![
        4 => (cpu.clone(), timer.clone(), prop_oneof![
            1 => -50_000i64..0,
            6 => 0i64..500_000,
        ]).prop_map(|(cpu, timer, delta_ns)| Action::Start(cpu, timer, delta_ns)),
        2 => (cpu, timer.clone()).prop_map(|(cpu, timer)| Action::Cancel(cpu, timer)),
        3 => (0..200_000u64).prop_map(Action::Pass),
        1 => (timer, proptest::option::of(20_000..200_000u64))
            .prop_map(|(timer, ns)| Action::Period(timer, ns)),
    ]
}

#[derive(Default)]
struct Kernel {
    now: u64,
    /// By CPU: expiry and timer, in any order.
    pending: [Vec<(u64, usize)>; CPUS],
    armed: [u64; CPUS],
    periods: [Option<u64>; TIMERS],
    text: String,
    writes: u64,
    interrupts: u64,
    for_nothing: u64,
    fired: u64,
}

impl Kernel {
    fn new() -> Kernel {
        let text = "# tracer: nop\n".to_string();
        Kernel { now: 1_000_000, armed: [NEVER; CPUS], text, ..Kernel::default() }
    }

    fn print(&mut self, cpu: usize, flags: &str, event: &str) {
        let (seconds, micros) = (self.now / 1_000_000_000, self.now / 1_000 % 1_000_000);
        let cpu = NUMBERS[cpu];
        writeln!(self.text, " a-1 [{cpu:03}] {flags}  {seconds}.{micros:06}: {event}").unwrap();
        self.now += 100;
    }

    fn earliest(&self, cpu: usize) -> u64 {
        self.pending[cpu].iter().map(|(expiry, _)| *expiry).min().unwrap_or(NEVER)
    }

    fn program(&mut self, cpu: usize, expiry: u64) {
        self.armed[cpu] = expiry;
        self.writes += 1;
        self.print(cpu, "d..1.", "write_msr: 6e0, value 1");
    }

    /// Removes a timer; returns its CPU and its expiry.
    fn take(&mut self, timer: usize) -> Option<(usize, u64)> {
        for (cpu, pending) in self.pending.iter_mut().enumerate() {
            if let Some(place) = pending.iter().position(|(_, other)| *other == timer) {
                return Some((cpu, pending.swap_remove(place).0));
            }
        }
        None
    }

    fn start(&mut self, cpu: usize, timer: usize, expiry: u64) {
        let old = self.take(timer);
        self.pending[cpu].push((expiry, timer));
        let armed = u64::from(old.is_some());
        self.print_start(cpu, "d..1.", timer, expiry, armed);
        let was_first_here = old == Some((cpu, self.armed[cpu]));
        let wanted = if was_first_here { self.earliest(cpu) } else { expiry };
        if was_first_here && wanted != self.armed[cpu] || wanted < self.armed[cpu] {
            self.program(cpu, wanted);
        }
    }

    fn print_start(&mut self, cpu: usize, flags: &str, timer: usize, expiry: u64, armed: u64) {
        let event = format!(
            "hrtimer_start: hrtimer={timer:016x} function=f expires={expiry} \
             softexpires={expiry} mode=ABS was_armed={armed}"
        );
        self.print(cpu, flags, &event);
    }

    fn cancel(&mut self, cpu: usize, timer: usize) {
        let Some((base, expiry)) = self.take(timer) else { return };
        self.print(cpu, "d..1.", &format!("hrtimer_cancel: hrtimer={timer:016x}"));
        if base == cpu && expiry == self.armed[cpu] && self.earliest(cpu) != expiry {
            let earliest = self.earliest(cpu);
            self.program(cpu, earliest);
        }
    }

    /// Advances the time. Devices deliver their events 3 us late.
    fn pass(&mut self, until: u64) {
        while let Some(cpu) = (0..CPUS).min_by_key(|cpu| self.armed[*cpu])
            && self.armed[cpu] <= until.max(self.now)
        {
            self.now = self.now.max(self.armed[cpu]) + 3_000;
            self.interrupt(cpu);
        }
        self.now = self.now.max(until);
    }

    fn interrupt(&mut self, cpu: usize) {
        self.interrupts += 1;
        self.print(cpu, "d.h1.", "local_timer_entry: vector=236");
        let present = self.now;
        let mut any = false;
        while let Some(&(expiry, timer)) = self.pending[cpu].iter().min()
            && expiry <= present
        {
            any = true;
            self.fired += 1;
            let _ = self.take(timer);
            let name = format!("hrtimer={timer:016x}");
            let entry = format!("hrtimer_expire_entry: {name} function=f now={present}");
            self.print(cpu, "d.h1.", &entry);
            self.print(cpu, "d.h1.", &format!("hrtimer_expire_exit: {name}"));
            if let Some(period) = self.periods[timer] {
                let expiry = (present + period).next_multiple_of(GRID_NS);
                self.pending[cpu].push((expiry, timer));
                self.print_start(cpu, "d.h2.", timer, expiry, 0);
            }
        }
        self.for_nothing += u64::from(!any);
        self.armed[cpu] = NEVER;
        let earliest = self.earliest(cpu);
        if earliest != NEVER {
            self.program(cpu, earliest);
        }
        self.print(cpu, "d.h1.", "local_timer_exit: vector=236");
    }

    fn run(mut self, actions: &[Action]) -> Kernel {
        for action in actions {
            self.pass(self.now);
            match *action {
                Action::Start(cpu, timer, delta_ns) => {
                    let expiry = self.now.saturating_add_signed(delta_ns);
                    let in_past = delta_ns < 0;
                    let expiry = if in_past { expiry } else { expiry.next_multiple_of(GRID_NS) };
                    self.start(cpu, timer, expiry);
                }
                Action::Cancel(cpu, timer) => self.cancel(cpu, timer),
                Action::Pass(ns) => self.pass(self.now + ns),
                Action::Period(timer, ns) => self.periods[timer] = ns,
            }
        }
        self.pass(self.now);
        self.print(CPUS - 1, ".....", "tick_stop: success=1 dependency=NONE");
        self
    }
}

proptest! {
    #![proptest_config(seeded("replay_property", 100))]

    /// Goal: the replay under the kernel's policy has the kernel's writes; under every policy the
    /// kernel's timers fire, none early.
    #[test]
    fn the_replay_reproduces_the_kernel(
        actions in proptest::collection::vec(action(), 1..60),
    ) {
        let kernel = Kernel::new().run(&actions);
        prop_assume!(kernel.text.contains("timer="));
        let summary = replay(&kernel.text);
        prop_assert_eq!((summary.trace.cpus, summary.inferred_operations), (480, 0));
        prop_assert_eq!(summary.policies[2].device_writes, kernel.writes);
        prop_assert_eq!(wakeups(&summary)[2], kernel.interrupts);
        prop_assert_eq!(spurious(&summary)[2], kernel.for_nothing);
        prop_assert_eq!(fired(&summary), [kernel.fired; 3]);
        prop_assert_eq!(all(&summary, |result| result.early), [0; 3]);
        prop_assert_eq!(summary.trace.recorded.expirations, kernel.fired);
        // Eager has at least as many writes, and at most as many wakeups.
        let [eager, _, aware] = writes(&summary);
        prop_assert!(eager >= aware);
        prop_assert_eq!(wakeups(&summary)[0], wakeups(&summary)[2]);
        // Lazy has more spurious wakeups, and as many others.
        let useful = |policy: usize| wakeups(&summary)[policy] - spurious(&summary)[policy];
        prop_assert_eq!((useful(0), useful(1)), (useful(2), useful(2)));
        prop_assert!(spurious(&summary)[1] >= spurious(&summary)[2]);
    }
}
