//! What a thread does, as far as the tracer knows, and what the tracer has to do when that changes.
//!
//! Pure: [`State::on`] takes what the tracer has learnt, and returns what it must do. The tracer
//! carries that out (`engine/effects.rs`); a property test has a small kernel do it.

use crate::filter::WITH_NUMBERS;
use crate::line::Ns;
use crate::report::Ending;
use crate::sys::notices::Notice;
use crate::sys::ptrace::{Call, Registers};
use crate::timeout::{Endless, TimedCall, When, timed_call};
use libc::{c_int, c_long};

/// A wait with a deadline.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) call: TimedCall,
    /// The thread's registers at the begin of the call.
    pub(crate) registers: Registers,
    /// When the wait ends; `None` if that is beyond the range of the clock.
    pub(crate) deadline: Option<Ns>,
    pub(crate) since: Ns,
    /// Whether the call is not made: the thread waits for the answer to its notice.
    pub(crate) is_held: bool,
}

impl Wait {
    pub(crate) fn in_call(&self) -> Call {
        call_of(&self.registers)
    }
}

/// A wait with a timeout that the kernel itself ends, unseen by the tracer. The kernel's timeout is
/// right while the virtual clock does not jump, and comes too late after a jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untraced {
    pub(crate) call: TimedCall,
    pub(crate) at: Call,
    pub(crate) deadline: Ns,
    /// When the kernel's timeout ends the wait, which tells it from a later one in the same call.
    /// `None` if that one sends a notice, or it is not known.
    pub(crate) expiry: Option<Ns>,
}

impl Untraced {
    /// Returns whether a thread with these registers is in this wait.
    pub(crate) fn is_at(&self, &(number, ip, args): &Call) -> bool {
        let (own, own_ip, own_args) = self.at;
        // The kernel repeats an interrupted poll(2) under another number: restart_syscall(2).
        let is_number = number == own || number == libc::SYS_restart_syscall;
        is_number && (ip, args) == (own_ip, own_args)
    }

    /// Returns how far the wait is for a thread in a call.
    pub(crate) fn progress(&self, call: InCall) -> Progress {
        match call {
            InCall::Runs => Progress::Unknown,
            InCall::Waits(call) if self.is_at(&call) => Progress::Lasts,
            InCall::Waits(_) | InCall::Ended => Progress::Ended,
        }
    }

    /// Returns whether the wait is perhaps the last one of a thread, whose last sleep with a
    /// timeout has this end.
    pub(crate) fn is_last(&self, expiry: Option<Ns>) -> bool {
        self.expiry.is_none() || self.expiry == expiry
    }
}

/// What an eBPF program shows of a thread that sleeps: the end of its last sleep with a timeout, if
/// that is known. That is by the kernel's clock, so with the time of both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleep {
    pub(crate) expiry: Option<Ns>,
    pub(crate) now: Ns,
    pub(crate) kernels_now: Ns,
}

impl Sleep {
    /// Returns the wait of the thread in a call, with the kernel's own timeout.
    fn wait(&self, (number, ip, args): Call) -> Option<Untraced> {
        // An interrupted poll(2) is repeated under another number.
        let is_repeated = number == libc::SYS_restart_syscall;
        let number = if is_repeated { libc::SYS_poll } else { number };
        let call = timed_call(number, args, |_| None).filter(|_| WITH_NUMBERS.contains(&number))?;
        let When::After(timeout) = call.when else { return None };
        let left = self.expiry.map_or(timeout, |at| at.saturating_sub(self.kernels_now));
        let deadline = self.now.saturating_add(left);
        Some(Untraced { call, at: (number, ip, args), deadline, expiry: self.expiry })
    }
}

/// What is known of a thread's last untraced wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// The thread waits.
    Lasts,
    Ended,
    /// The thread runs: it is perhaps about to begin the wait or to go on with it, or has ended it.
    Unknown,
}

/// What a thread does, by its system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InCall {
    /// The thread is on a CPU, or queued for one.
    Runs,
    Waits(Call),
    Ended,
}

/// What a thread does.
#[derive(Clone, Copy)]
pub(crate) enum State {
    /// The thread is new, and has not yet stopped for the first time.
    New,
    /// The thread runs, or waits in a call without a timeout or with the kernel's own timeout.
    Free(Last),
    /// The thread makes a call that only sleeps. It is blocked until the tracer answers its notice;
    /// only a signal can end the sleep early.
    Held(Wait, Notice),
    /// The thread is in a wait that has no timeout in the kernel. ptrace reports the call's end.
    Waiting(Wait),
    /// The tracer has interrupted the thread's wait (see `Waiting`), because its deadline has come.
    Ending(Wait),
    /// The thread is in timer_create(2), whose result the tracer has to see.
    CreatingTimer,
    /// The thread's process has been stopped by a signal.
    Stopped(Last),
    /// The thread waits for its child of vfork(2).
    Lending,
}

/// What a thread's last wait has left.
#[derive(Clone, Copy)]
pub(crate) enum Last {
    Nothing,
    /// A signal has interrupted the wait, which began with these registers and has this deadline.
    /// The kernel perhaps repeats the call.
    Interrupted(Registers, Option<Ns>),
    /// The thread is in a wait with the kernel's own timeout, unless the wait has ended unseen.
    Untraced(Untraced),
    /// The deadline of that wait has come, and the tracer has interrupted the thread.
    Due(Untraced, Woken),
}

/// Whether the tracer's interruption has woken a thread, which was then asleep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    Yes,
    No,
}

/// Whether a signal is perhaps on its way to a thread in a call that only sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Signals {
    #[default]
    None,
    UnderWay,
}

/// Where a thread waits for the tracer before a call.
#[derive(Clone, Copy)]
pub(crate) enum Before {
    /// It has stopped, with these registers.
    Stop(Registers),
    /// It has stopped, with these registers, at a call that it does not make: the first one after
    /// a wait that the clock has jumped to the end of.
    Skipped(Registers),
    /// It is blocked until its notice is answered.
    Notice(Notice),
}

/// What the tracer has learnt of a thread.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// The thread begins a wait, of which the tracer is to end a part: a deadline is that of the
    /// call, from now on.
    Waits(TimedCall, Option<Ns>, Before),
    /// The thread is in, or with a notice begins, a wait with the kernel's own timeout.
    WaitsUntraced(Untraced, Option<Notice>),
    /// The thread has stopped or has sent a notice before a call, and gets this answer at once.
    IsAnswered(Then),
    /// The thread has stopped, and goes on.
    GoesOn,
    /// The thread has stopped before a call that perhaps sends a signal.
    SendsSignal,
    /// The thread has stopped before timer_create(2), whose result the tracer has to see.
    CreatesTimer,
    /// The thread has stopped at the end of a call, which a signal or the tracer has perhaps
    /// interrupted.
    EndsCall { is_interrupted: bool },
    /// A signal has interrupted the thread's untraced wait, which the kernel perhaps repeats. The
    /// registers are those of the call.
    IsInterrupted(Registers),
    /// The thread has stopped for a signal. `lasts` tells whether it is in its untraced wait.
    GetsSignal { number: c_int, has_handler: bool, lasts: bool },
    /// The thread's process has been stopped.
    IsStopped,
    /// The thread has stopped because it is new, was interrupted, or has waited for its child.
    Stops,
    /// The thread has made a process, and waits for it: vfork(2).
    Lends,
    /// The deadline of the thread's wait has come; how far its untraced wait is, if it has one.
    IsDue(Progress),
    /// The thread, which was held, has got the answer to its notice.
    IsReleased,
    /// The tracer's interruption has not woken the thread.
    WasAwake,
    /// The thread's untraced wait has ended.
    HasWaited,
}

/// What the tracer has to do with the armed deadline of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Deadline {
    #[default]
    Keep,
    Arm(Ns),
    Cancel,
}

/// The result that a wait gets at the thread's stop, before the thread goes on.
#[derive(Clone, Copy, Default)]
pub(crate) enum Finish {
    #[default]
    Nothing,
    Wait(Wait, Ending),
    Untraced(Untraced, Woken),
}

/// What the tracer has to do with a thread.
#[derive(Clone, Copy, Default)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// Resume it, and deliver this signal unless it is zero.
    Resume(c_int),
    /// Resume it until the end of its call.
    ResumeToExit,
    /// Resume it until its next call: if that is a wait, too, it need not begin.
    ResumeToNextCall,
    /// Have it make the call of this wait without a timeout, and resume it until the end.
    Wait(Wait),
    /// Have it make its call.
    MakeCall(Before),
    /// Give its call this result, without making the call.
    Return(Before, i64),
    /// Let it take part in the stop of its process.
    Listen,
    /// Interrupt it.
    Interrupt,
    /// Interrupt it, and find out whether that has woken it.
    Wake,
}

/// What the tracer has to do, in this order. Dropping it loses a wait.
#[must_use]
#[derive(Clone, Copy, Default)]
pub(crate) struct Effects {
    pub(crate) deadline: Deadline,
    pub(crate) finish: Finish,
    pub(crate) signals: Signals,
    pub(crate) then: Then,
}

impl From<Then> for Effects {
    fn from(then: Then) -> Effects {
        Effects { then, ..Effects::default() }
    }
}

impl TimedCall {
    /// Returns whether the call only looks, or sleeps for no time, for which the kernel would let
    /// a thread sleep for a moment.
    pub(crate) fn takes_no_time(&self) -> bool {
        let is_sleep = self.endless == Endless::Pause;
        self.when == When::Now || (self.when == When::After(0) && is_sleep)
    }
}

impl State {
    /// Returns the untraced wait that has perhaps not ended.
    pub(crate) fn untraced(&self) -> Option<Untraced> {
        match self {
            State::Free(last) | State::Stopped(last) => match last {
                Last::Untraced(wait) | Last::Due(wait, _) => Some(*wait),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns what has changed for a thread that a census has found in a call, and what the eBPF
    /// program shows of its sleep, where it follows sleeps. `None` if its untraced wait lasts.
    pub(crate) fn found(&self, in_call: InCall, sleep: Option<Sleep>) -> Option<Change> {
        let lasts = |wait: Untraced| {
            wait.progress(in_call) == Progress::Lasts
                && sleep.is_none_or(|sleep| wait.is_last(sleep.expiry))
        };
        if self.untraced().is_some_and(lasts) {
            return None;
        }
        let wait = match (in_call, sleep) {
            (InCall::Waits(call), Some(sleep)) => sleep.wait(call),
            _ => None,
        };
        Some(wait.map_or(Change::HasWaited, |wait| Change::WaitsUntraced(wait, None)))
    }

    /// Returns the traced wait in which the thread is.
    pub(crate) fn wait(&self) -> Option<Wait> {
        match self {
            State::Held(wait, _) | State::Waiting(wait) | State::Ending(wait) => Some(*wait),
            _ => None,
        }
    }

    /// Returns whether a deadline of the thread is armed, unless it has just come.
    pub(crate) fn has_deadline(&self) -> bool {
        matches!(
            self,
            State::Held(..)
                | State::Waiting(_)
                | State::Free(Last::Untraced(_))
                | State::Stopped(Last::Untraced(_))
        )
    }

    /// Returns what the thread's last wait leaves if the thread stops, or sends another notice.
    pub(crate) fn last(&self) -> Last {
        match *self {
            State::Free(last) | State::Stopped(last) => last,
            // Only a signal ends the sleep before the answer to the notice.
            State::Held(wait, _) => Last::Interrupted(wait.registers, wait.deadline),
            _ => Last::Nothing,
        }
    }

    /// Changes the state by what the tracer has learnt at the time `now`. Returns what the tracer
    /// must do.
    pub(crate) fn on(&mut self, change: Change, now: Ns) -> Effects {
        let before = *self;
        let mut effects = self.change(change, now);
        if effects.deadline == Deadline::Keep && before.has_deadline() && !self.has_deadline() {
            effects.deadline = Deadline::Cancel;
        }
        effects
    }

    fn change(&mut self, change: Change, now: Ns) -> Effects {
        let before = *self;
        let mut effects = Effects::default();
        (*self, effects.then) = match change {
            Change::Waits(call, deadline, at) => return self.waits(call, deadline, at, now),
            Change::WaitsUntraced(wait, notice) => {
                effects.deadline = Deadline::Arm(wait.deadline);
                let then = notice.map_or(Then::Nothing, |of| Then::MakeCall(Before::Notice(of)));
                (State::Free(Last::Untraced(wait)), then)
            }
            Change::IsAnswered(then) => (State::Free(Last::Nothing), then),
            Change::GoesOn => (State::Free(Last::Nothing), Then::Resume(0)),
            Change::SendsSignal => {
                effects.signals = Signals::UnderWay;
                (State::Free(Last::Nothing), Then::Resume(0))
            }
            Change::CreatesTimer => (State::CreatingTimer, Then::ResumeToExit),
            Change::EndsCall { is_interrupted } => {
                let (wait, end) = match before {
                    State::Waiting(wait) => (wait, Ending::Event),
                    State::Ending(wait) => (wait, Ending::Timeout),
                    _ => return self.change(Change::GoesOn, now),
                };
                effects.finish = Finish::Wait(wait, end);
                let last = match is_interrupted && end == Ending::Event {
                    true => {
                        // The time that is left is stored, and the signal's handler has yet to run.
                        effects.signals = Signals::UnderWay;
                        Last::Interrupted(wait.registers, wait.deadline)
                    }
                    false => Last::Nothing,
                };
                (State::Free(last), Then::Resume(0))
            }
            Change::IsInterrupted(registers) if let Some(wait) = before.untraced() => {
                effects.deadline = Deadline::Cancel;
                (before.with(Last::Interrupted(registers, Some(wait.deadline))), Then::Nothing)
            }
            Change::GetsSignal { number, has_handler, lasts } => {
                effects = self.leave_sleep();
                let last = match before.last() {
                    // The call returns to the program.
                    Last::Interrupted(..) if has_handler => Last::Nothing,
                    // The stop for the signal has cancelled the tracer's interruption.
                    Last::Due(wait, _) if lasts => {
                        effects.deadline = Deadline::Arm(wait.deadline);
                        Last::Untraced(wait)
                    }
                    last => last,
                };
                (State::Free(last), Then::Resume(number))
            }
            Change::IsStopped => {
                effects = self.leave_sleep();
                effects.signals = Signals::UnderWay;
                (State::Stopped(before.last()), Then::Listen)
            }
            Change::Stops => {
                effects = self.leave_sleep();
                let (last, then) = match before.last() {
                    Last::Due(wait, woken) => {
                        effects.finish = Finish::Untraced(wait, woken);
                        (Last::Nothing, Then::ResumeToNextCall)
                    }
                    last => (last, Then::Resume(0)),
                };
                (State::Free(last), then)
            }
            Change::Lends => (State::Lending, Then::Resume(0)),
            Change::IsDue(progress) => return self.is_due(progress, now),
            Change::IsReleased if matches!(before, State::Held(..)) => {
                (State::Free(Last::Nothing), Then::Nothing)
            }
            Change::WasAwake if let State::Free(Last::Due(wait, _)) = before => {
                (State::Free(Last::Due(wait, Woken::No)), Then::Nothing)
            }
            Change::HasWaited if before.untraced().is_some() => {
                (before.with(Last::Nothing), Then::Nothing)
            }
            _ => return effects,
        };
        effects
    }

    /// Begins a wait, which perhaps takes no time.
    fn waits(&mut self, call: TimedCall, new: Option<Ns>, at: Before, now: Ns) -> Effects {
        // Of a call that is made again, the tracer learns as of any other.
        let makes = call.when == When::Now || matches!(at, Before::Skipped(_));
        if makes || call.takes_no_time() {
            *self = State::Free(Last::Nothing);
            return if makes { Then::MakeCall(at) } else { Then::Return(at, 0) }.into();
        }
        let registers = at.registers();
        let deadline = match self.last() {
            Last::Interrupted(of, old) if is_same_call(&of, &registers) => old,
            _ => new,
        };
        let is_held = matches!(at, Before::Notice(_));
        let wait = Wait { call, registers, deadline, since: now, is_held };
        let then;
        (*self, then) = match at {
            Before::Notice(notice) => (State::Held(wait, notice), Then::Nothing),
            Before::Stop(_) | Before::Skipped(_) => (State::Waiting(wait), Then::Wait(wait)),
        };
        let deadline = deadline.map_or(Deadline::Cancel, Deadline::Arm);
        Effects { deadline, then, ..Effects::default() }
    }

    /// Handles a deadline that has come.
    fn is_due(&mut self, progress: Progress, now: Ns) -> Effects {
        /// When to check again whether a thread that runs is in its wait.
        const CHECK_NS: Ns = 1_000_000;
        match *self {
            // If a signal has interrupted the sleep, this fails, and the thread stops next.
            State::Held(wait, notice) => {
                Then::Return(Before::Notice(notice), wait.call.timed_out).into()
            }
            State::Waiting(wait) => {
                *self = State::Ending(wait);
                Then::Interrupt.into()
            }
            State::Free(Last::Untraced(wait)) | State::Stopped(Last::Untraced(wait)) => {
                match progress {
                    Progress::Ended => *self = self.with(Last::Nothing),
                    Progress::Unknown => {
                        let deadline = Deadline::Arm(now.saturating_add(CHECK_NS));
                        return Effects { deadline, ..Effects::default() };
                    }
                    // A process that is stopped gets the result when it continues.
                    Progress::Lasts => *self = self.with(Last::Due(wait, Woken::Yes)),
                }
                match self {
                    State::Free(Last::Due(..)) => Then::Wake.into(),
                    _ => Effects::default(),
                }
            }
            _ => Effects::default(),
        }
    }

    /// Ends the sleep of a thread that has stopped because a signal has interrupted the sleep.
    fn leave_sleep(&self) -> Effects {
        match *self {
            State::Held(wait, _) => {
                let finish = Finish::Wait(wait, Ending::Event);
                Effects { finish, signals: Signals::UnderWay, ..Effects::default() }
            }
            _ => Effects::default(),
        }
    }

    fn with(self, last: Last) -> State {
        match self {
            State::Stopped(_) => State::Stopped(last),
            _ => State::Free(last),
        }
    }
}

impl Before {
    pub(crate) fn registers(&self) -> Registers {
        match self {
            Before::Stop(registers) | Before::Skipped(registers) => *registers,
            Before::Notice(notice) => notice.registers(),
        }
    }
}

/// The arguments of a system call, from the registers.
pub(crate) fn arguments(registers: &Registers) -> [u64; 6] {
    let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = *registers;
    [rdi, rsi, rdx, r10, r8, r9]
}

/// The system call that a thread is about to make, from its registers.
pub(crate) fn call_of(registers: &Registers) -> Call {
    (registers.orig_rax.cast_signed() as c_long, registers.rip, arguments(registers))
}

/// Returns whether the call with these registers is one that perhaps waits untraced.
pub(crate) fn is_untraced(registers: &Registers) -> bool {
    WITH_NUMBERS.contains(&call_of(registers).0)
}

/// Returns whether a call is the repetition of one that was interrupted.
fn is_same_call(before: &Registers, now: &Registers) -> bool {
    let identity = |of: &Registers| (of.rip, of.rsp, of.orig_rax, arguments(of));
    identity(before) == identity(now)
}
