//! Makes a history that breaks a promise as short as possible.

use crate::fault::Fault;
use crate::history::Op;
use crate::play::play;
use crate::timers::Timers;
use core::mem::discriminant;

/// Removes operations and shortens times while the history still breaks a promise of this kind.
pub fn shrink<T: Timers>(ops: Vec<Op>, fault: Fault) -> (Vec<Op>, Fault) {
    let kind = discriminant(&fault);
    let mut best = (ops, fault);
    let fails = |ops: &[Op]| play::<T>(ops).err().filter(|fault| discriminant(fault) == kind);
    loop {
        let before = best.0.clone();
        remove(&mut best, &fails);
        shorten(&mut best, &fails);
        if best.0 == before {
            return best;
        }
    }
}

/// Removes parts of the history, in halves first, as long as it still fails.
fn remove(best: &mut (Vec<Op>, Fault), fails: &impl Fn(&[Op]) -> Option<Fault>) {
    let mut length = best.0.len().div_ceil(2);
    while length > 0 {
        let mut start = 0;
        while start < best.0.len() {
            let mut ops = best.0.clone();
            ops.drain(start..(start + length).min(ops.len()));
            match fails(&ops) {
                Some(fault) => *best = (ops, fault),
                None => start += length,
            }
        }
        length /= 2;
    }
}

/// Brings each time as near to zero as it can be while the history still has the fault. When a step
/// towards zero makes the fault disappear, the step is not taken, and half of it is tried.
fn shorten(best: &mut (Vec<Op>, Fault), fails: &impl Fn(&[Op]) -> Option<Fault>) {
    for at in 0..best.0.len() {
        let mut op = best.0[at];
        let mut step = change_time(&mut op, |time| time);
        while step != 0 {
            let mut ops = best.0.clone();
            let shorter = change_time(&mut ops[at], |time| time - step);
            // A step beyond zero is not taken: it would turn a future deadline into a past one.
            match fails(&ops) {
                Some(fault) if shorter.signum() != -step.signum() => *best = (ops, fault),
                _ => step /= 2,
            }
        }
    }
}

/// Changes the time of an operation, and returns it; zero if the operation has none.
fn change_time(op: &mut Op, change: impl FnOnce(i64) -> i64) -> i64 {
    match op {
        Op::Arm { delay, .. } | Op::PushOut { delay, .. } | Op::ArmInCallback { delay, .. } => {
            *delay = change(*delay);
            *delay
        }
        Op::Advance { by } => {
            let time = change(i64::try_from(*by).unwrap_or(i64::MAX));
            *by = time.unsigned_abs();
            time
        }
        Op::Cancel { .. } | Op::Sleep | Op::CancelInCallback { .. } => 0,
    }
}
