//! Timers that programs set: timerfd_create(2), timer_create(2), setitimer(2) and alarm(2).
//!
//! The kernel's own timers are never armed. When a timer's deadline comes, the tracer makes it
//! expire: it raises the count of a descriptor, or queues the signal that the kernel would queue.

use super::state::{Due, Engine, FAULT, INVALID};
use super::timer::{Effect, Timer, TimerId};
use crate::line::Ns;
use crate::sys::ptrace::Registers;
use crate::sys::{descriptors, events, memory, ptrace};
use crate::thread::{Change, Signals, arguments, call_of};
use crate::timeout::{NS, When, timespec};
use libc::{c_int, pid_t};

const SI_TIMER: u64 = 0xffff_fffe;
/// The flags of timerfd_settime(2).
const FLAGS: u32 = (libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET) as u32;
/// How long a timer whose signal waits to be taken is at least not checked again.
const CHECK_NS: u64 = 1_000_000;

impl Engine<'_> {
    /// Answers a call on a timer. Returns false for all calls that the kernel has to make.
    pub(crate) fn answer_timer(&mut self, tid: pid_t, registers: &Registers) -> bool {
        let process = self.tree.process_of(tid);
        let (number, _, [first, second, third, fourth, ..]) = call_of(registers);
        let of_process = TimerId::Process(process, first & u64::from(u32::MAX));
        let known = match number {
            libc::SYS_timerfd_settime | libc::SYS_timerfd_gettime => {
                self.descriptor(process, first)
            }
            _ => Some(of_process).filter(|id| self.timers.contains_key(id)),
        };
        let result = match (number, known) {
            // The kernel sends the signals of clocks of CPU time (2, 3, and negative numbers).
            (libc::SYS_timer_create, _) if !matches!(first as c_int, 2 | 3 | ..=-1) => {
                self.on(tid, Change::CreatesTimer);
                return true;
            }
            (libc::SYS_timer_settime, _) if third == 0 => INVALID,
            // The kernel refuses it, after it has checked what it is given.
            (libc::SYS_timerfd_settime, _) if second as u32 & !FLAGS != 0 => return false,
            (libc::SYS_timer_settime | libc::SYS_timerfd_settime, Some(id)) => {
                self.set_timer(tid, id, second, third, fourth)
            }
            (libc::SYS_timer_gettime | libc::SYS_timerfd_gettime, Some(id)) => {
                write_setting(tid, self.setting(id), second, 1)
            }
            (libc::SYS_timer_getoverrun, Some(id)) => self.overrun(id).cast_signed(),
            (libc::SYS_timer_delete, _) => {
                self.remove_timer(of_process);
                return false;
            }
            (libc::SYS_setitimer, _) if first as c_int == libc::ITIMER_REAL => {
                self.set_alarm(tid, process, second, third)
            }
            (libc::SYS_getitimer, _) => {
                write_setting(tid, self.setting(TimerId::Alarm(process)), second, 1_000)
            }
            (libc::SYS_alarm, _) => {
                let id = TimerId::Alarm(process);
                let (left, _) = self.setting(id);
                self.arm_alarm(process, (first & u64::from(u32::MAX)) * NS, 0);
                // Round as the kernel does: to at least a second, if the alarm was armed.
                let round = left >= NS && left % NS < NS / 2;
                (left / NS + u64::from(left > 0 && !round)).cast_signed()
            }
            _ => return false,
        };
        self.answer(tid, *registers, result);
        true
    }

    /// Returns a timer's remaining time and interval; zero if it is not armed.
    fn setting(&self, id: TimerId) -> (Ns, Ns) {
        let Some(timer) = self.timers.get(&id) else { return (0, 0) };
        let left = timer.deadline.map_or(0, |at| at.saturating_sub(self.clock.now()).max(1));
        (left, timer.interval)
    }

    /// Sets a timer by an `itimerspec`, as timer_settime(2) and timerfd_settime(2) do.
    fn set_timer(&mut self, tid: pid_t, id: TimerId, flags: u64, new: u64, old: u64) -> i64 {
        let Some(words) = memory::words::<4>(tid, new) else { return FAULT };
        let [i, j, k, l] = words.map(u64::cast_signed);
        let (Some(interval), Some(value)) = (timespec([i, j]), timespec([k, l])) else {
            return INVALID;
        };
        let before = self.setting(id);
        let Some(timer) = self.timers.get(&id) else { return INVALID };
        if let (Effect::Count(fd), Some(_)) = (&timer.effect, timer.signalled) {
            descriptors::set_timer(fd, 0);
        }
        let is_absolute = flags & libc::TIMER_ABSTIME as u64 != 0;
        let at = When::At { clock: timer.clock, ns: value };
        let at = self.tree.outside_of_namespace(tid, at);
        let when = if is_absolute { at } else { When::After(value) };
        self.arm_timer(id, (value > 0).then_some(when), interval);
        // The timer is set also if this fails, as the kernel's is.
        if old == 0 { 0 } else { write_setting(tid, before, old, 1) }
    }

    fn arm_timer(&mut self, id: TimerId, when: Option<When>, interval: Ns) {
        let now = self.clock.now();
        let deadline = when.map(|when| match when {
            When::Now => now,
            When::After(ns) => now.saturating_add(ns),
            When::At { clock, ns } => self.clock.offsets.to_monotonic(clock, ns),
        });
        let Some(timer) = self.timers.get_mut(&id) else { return };
        (timer.when, timer.deadline) = (when.unwrap_or(When::After(0)), deadline);
        // Of a timer that is disarmed, only timerfd_gettime(2) still tells the interval.
        let keeps = deadline.is_some() || matches!(timer.effect, Effect::Count(_));
        timer.interval = if keeps { interval } else { 0 };
        (timer.signalled, timer.overrun) = (None, 0);
        match deadline {
            Some(at) => self.deadlines.arm(at, Due::Timer(id)),
            None => self.deadlines.cancel(Due::Timer(id)),
        }
    }

    fn remove_timer(&mut self, id: TimerId) {
        self.timers.remove(&id);
        self.deadlines.cancel(Due::Timer(id));
    }

    /// Forgets the timers of a process that has ended or has started a new program, except `kept`.
    pub(crate) fn forget_timers(&mut self, process: pid_t, kept: Option<TimerId>) {
        let is_gone = |id: &TimerId| match id {
            TimerId::Alarm(of) | TimerId::Process(of, _) => *of == process && Some(*id) != kept,
            TimerId::Descriptor(_) => false,
        };
        for id in self.timers.keys().copied().filter(is_gone).collect::<Vec<_>>() {
            self.remove_timer(id);
        }
    }

    fn set_alarm(&mut self, tid: pid_t, process: pid_t, new: u64, old: u64) -> i64 {
        let words = if new == 0 { Some([0; 4]) } else { memory::words::<4>(tid, new) };
        let Some(words) = words else { return FAULT };
        let [i, j, k, l] = words.map(u64::cast_signed);
        let time = |seconds, micros: i64| timespec([seconds, micros.saturating_mul(1_000)]);
        let (Some(interval), Some(value)) = (time(i, j), time(k, l)) else { return INVALID };
        let before = self.setting(TimerId::Alarm(process));
        self.arm_alarm(process, value, interval);
        if old == 0 { 0 } else { write_setting(tid, before, old, 1_000) }
    }

    fn arm_alarm(&mut self, process: pid_t, value: Ns, interval: Ns) {
        let id = TimerId::Alarm(process);
        let new = || Timer::new(process, Effect::Alarm, libc::CLOCK_MONOTONIC as u64);
        self.timers.entry(id).or_insert_with(new);
        self.arm_timer(id, (value > 0).then_some(When::After(value)), interval);
    }

    /// Returns the timer that a process has as the descriptor `fd`; `None` if that is no timer.
    fn descriptor(&mut self, process: pid_t, fd: u64) -> Option<TimerId> {
        let fd = fd & u64::from(u32::MAX);
        let is_same = |timer: &Timer| match &timer.effect {
            Effect::Count(known) => descriptors::is_same_file(process, fd, known),
            _ => false,
        };
        // Most often, the descriptor is that of the same timer as the last time.
        let last = self.timers_by_fd.get(&(process, fd)).copied();
        if last.and_then(|id| self.timers.get(&id)).is_some_and(is_same) {
            return last;
        }
        let known = self.timers.iter().find(|(_, timer)| is_same(timer)).map(|(id, _)| *id);
        let id = match known {
            Some(id) => id,
            None => {
                let file = descriptors::copy(process, fd).ok()?;
                let clock = descriptors::timer_clock(&file)?;
                self.drop_unused_descriptors();
                let id = TimerId::Descriptor(self.descriptors_made);
                self.descriptors_made += 1;
                // What is not in the tree has perhaps armed it.
                let new = Timer::new(process, Effect::Count(file), clock);
                self.timers.insert(id, Timer { signalled: Some(0), ..new });
                id
            }
        };
        self.timers_by_fd.insert((process, fd), id);
        Some(id)
    }

    /// From time to time, forgets descriptors whose timers are not armed: they are perhaps closed.
    fn drop_unused_descriptors(&mut self) {
        const ENOUGH: u64 = 64;
        if self.descriptors_made % ENOUGH == ENOUGH - 1 {
            self.timers.retain(|id, timer| {
                !matches!(id, TimerId::Descriptor(_)) || timer.deadline.is_some()
            });
            self.timers_by_fd.retain(|_, id| self.timers.contains_key(id));
        }
    }

    /// Adds the timer of a thread at the end of timer_create(2), if the call has made one.
    pub(crate) fn timer_was_created(&mut self, tid: pid_t, registers: &Registers) {
        let [clock, event, id, ..] = arguments(registers);
        let Some([id]) = memory::words(tid, id).filter(|_| registers.rax == 0) else { return };
        let id = id & u64::from(u32::MAX);
        let effect = match memory::words::<3>(tid, event) {
            None => Effect::Signal { number: libc::SIGALRM, value: id, thread: None },
            Some([value, kinds, thread]) => match (kinds >> 32) as c_int {
                libc::SIGEV_NONE => Effect::Nothing,
                kind => {
                    let thread = (kind == libc::SIGEV_THREAD_ID)
                        .then(|| events::thread_in_namespace(tid, thread as pid_t));
                    Effect::Signal { number: kinds as c_int, value, thread }
                }
            },
        };
        let process = self.tree.process_of(tid);
        self.timers.insert(TimerId::Process(process, id), Timer::new(process, effect, clock));
    }

    /// Makes a timer expire whose deadline has come.
    pub(crate) fn expire(&mut self, id: TimerId) {
        let now = self.clock.now();
        let Some(timer) = self.timers.get_mut(&id) else { return };
        let Some(deadline) = timer.deadline.take() else { return };
        // A timer whose signal has yet to be taken sends no other one.
        let is_pending = timer.signalled.is_some() && timer.is_signal_pending(id);
        let mut times = 1;
        if timer.interval > 0 {
            let until = if is_pending { now.saturating_add(CHECK_NS) } else { now };
            times += until.saturating_sub(deadline).checked_div(timer.interval).unwrap_or(0);
            let next = deadline.saturating_add(times.saturating_mul(timer.interval));
            timer.deadline = Some(next);
            self.deadlines.arm(next, Due::Timer(id));
        }
        if is_pending {
            return;
        }
        self.tree.signals = Signals::UnderWay;
        match (&timer.effect, id) {
            (Effect::Count(fd), _) => {
                descriptors::expire_timer(fd, times);
                timer.signalled = Some(deadline);
            }
            (Effect::Alarm, TimerId::Alarm(process)) => events::kill(process, libc::SIGALRM),
            (&Effect::Signal { number, value, thread }, TimerId::Process(process, number_of)) => {
                // A signal that was taken unseen was taken before this expiry.
                timer.has_delivered(deadline.saturating_sub(1));
                timer.signalled = Some(deadline);
                let mut info = [0; 16];
                info[0] = number as u64;
                info[1] = SI_TIMER;
                info[2] = number_of;
                info[3] = value;
                events::queue_timer_signal(process, thread, number, &info);
            }
            _ => {}
        }
    }

    /// Returns how many expiries the last signal of a timer stands for, besides its own.
    fn overrun(&mut self, id: TimerId) -> u64 {
        let now = self.clock.now();
        let Some(timer) = self.timers.get_mut(&id) else { return 0 };
        if timer.signalled.is_some() && !timer.is_signal_pending(id) {
            timer.has_delivered(now);
        }
        timer.overrun
    }

    /// Completes the signal of a timer that a thread has just taken: the kernel counts its overrun
    /// at that moment. `info` has the words of a `siginfo_t`. Returns whether it has changed.
    pub(crate) fn complete_timer_signal(&mut self, tid: pid_t, info: &mut [u64]) -> bool {
        const LOW: u64 = u32::MAX as u64;
        let id = TimerId::Process(self.tree.process_of(tid), info[2] & LOW);
        let now = self.clock.now();
        let Some(timer) = self.timers.get_mut(&id).filter(|_| info[1] & LOW == SI_TIMER) else {
            return false;
        };
        timer.has_delivered(now);
        info[2] = (info[2] & LOW) | timer.overrun << 32;
        // The kernel arms a timer anew when its signal is taken.
        let next = timer.deadline.filter(|_| timer.interval > 0);
        if let Some(next) = next.filter(|next| *next > now) {
            let at = next - (next - now - 1) / timer.interval * timer.interval;
            timer.deadline = Some(at);
            self.deadlines.arm(at, Due::Timer(id));
        }
        true
    }

    /// Computes the deadlines of timers on the realtime clock again, after that clock has been set.
    pub(crate) fn rearm_realtime_timers(&mut self) {
        let moved = self.timers.iter().filter_map(|(id, timer)| match timer.when {
            When::At { .. } if timer.deadline.is_some() => Some((*id, timer.when, timer.interval)),
            _ => None,
        });
        for (id, when, interval) in moved.collect::<Vec<_>>() {
            self.arm_timer(id, Some(when), interval);
        }
    }
}

/// Writes a setting as an `itimerspec`, or with a divisor of 1,000 as an `itimerval`.
fn write_setting(tid: pid_t, (left, interval): (Ns, Ns), at: u64, divisor: u64) -> i64 {
    let words = [interval / NS, interval % NS / divisor, left / NS, left % NS / divisor];
    if memory::write_words(tid, at, &words) { 0 } else { FAULT }
}

/// Makes the signal of an alarm that the tracer has sent look as if the kernel had sent it.
pub(crate) fn correct_alarm(tid: pid_t) {
    let Some(mut info) = ptrace::signal_info(tid) else { return };
    let own = u64::from(std::process::id());
    if info[1] as c_int == libc::SI_USER && info[2] & u64::from(u32::MAX) == own {
        info[1] = libc::SI_KERNEL as u64;
        info[2..].fill(0);
        ptrace::set_signal_info(tid, &info);
    }
}
