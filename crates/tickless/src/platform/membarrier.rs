//! A full memory barrier on every running thread of the process, made by one of them.
//!
//! membarrier(2), private expedited, Linux 4.14. About 0.3 µs when no other thread runs, 1.3 µs
//! with one on another CPU.

use core::sync::atomic::{AtomicU8, Ordering};

const CMD_GLOBAL: libc::c_int = 1;
const CMD_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const CMD_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Can barriers be made? Registers the process on the first call.
pub fn is_available() -> bool {
    // Two threads may both ask: the answer is the same. A `OnceLock` might be held by another
    // thread when the process forks.
    static ANSWER: AtomicU8 = AtomicU8::new(0);
    const YES: u8 = 1;
    const NO: u8 = 2;
    match ANSWER.load(Ordering::Relaxed) {
        0 => {
            let is_available =
                !cfg!(any(miri, tickless_tsan)) && call(CMD_REGISTER_PRIVATE_EXPEDITED);
            ANSWER.store(if is_available { YES } else { NO }, Ordering::Relaxed);
            is_available
        }
        answer => answer == YES,
    }
}

/// Makes every running thread of this process pass a full barrier. Those that do not run passed
/// one when they were taken off their CPU.
///
/// Only called where [`is_available`] has said yes.
pub fn on_every_thread() {
    // A child of fork(2) is registered as its parent was; should a kernel see that otherwise,
    // it can register again, and the slow barrier needs no registration at all.
    let barrier = || {
        call(CMD_PRIVATE_EXPEDITED)
            || call(CMD_REGISTER_PRIVATE_EXPEDITED) && call(CMD_PRIVATE_EXPEDITED)
            || call(CMD_GLOBAL)
    };
    let mut round = 0;
    while !barrier() {
        // Nothing but a filter that was installed since then refuses all of them. Going on
        // without a barrier would be unsound, so this waits, and says what for.
        if round == 0 {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"tickless: membarrier(2) was available and is refused now; waiting for it\n",
            );
        }
        crate::platform::relax::relax(round);
        round = round.saturating_add(1);
    }
}

fn call(command: libc::c_int) -> bool {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, AtomicU64, compiler_fence};

    /// Apart from the other line, so that each store stays in its CPU's store buffer for a while.
    #[repr(align(128))]
    struct Line(AtomicU64);

    /// Goal: of a thread that stores and then loads without a fence, and one that stores, makes
    /// this barrier and then loads, at least one sees the other's store: the bias of a lock relies
    /// on it. Method: a litmus test on real hardware. The owner counts its rounds, the revoker its
    /// barriers, and both note what they saw; 10^7 rounds, or as many as `TICKLESS_LITMUS_ROUNDS`
    /// asks for.
    #[test]
    #[cfg_attr(any(miri, tickless_tsan), ignore = "there is no membarrier(2)")]
    fn one_of_two_threads_sees_the_others_store() {
        if !is_available() {
            return;
        }
        let asked = std::env::var("TICKLESS_LITMUS_ROUNDS").ok();
        let rounds: u64 = asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(10_000_000);
        let (inside, revoked) = (&Line(AtomicU64::new(0)), &Line(AtomicU64::new(0)));
        let is_over = &AtomicBool::new(false);
        // By revocation, from 1: the last round that the revoker saw.
        let mut last_seen = vec![0];
        let first_rounds = std::thread::scope(|s| {
            let owner = s.spawn(move || {
                // By revocation that the owner saw: the first round in which it did.
                let (mut first_rounds, mut last) = (Vec::new(), 0);
                for round in 1..=rounds {
                    inside.0.store(round, Ordering::Relaxed);
                    compiler_fence(Ordering::SeqCst);
                    let revocation = revoked.0.load(Ordering::Relaxed);
                    if revocation != last {
                        first_rounds.push((revocation, round));
                        last = revocation;
                    }
                }
                is_over.store(true, Ordering::Relaxed);
                first_rounds
            });
            while !is_over.load(Ordering::Relaxed) {
                let revocation = last_seen.len() as u64;
                revoked.0.store(revocation, Ordering::Relaxed);
                on_every_thread();
                last_seen.push(inside.0.load(Ordering::Relaxed));
                (0..revocation % 61).for_each(|_| core::hint::spin_loop());
            }
            owner.join().unwrap_or_default()
        });
        println!("{rounds} rounds, {} barriers, {} seen", last_seen.len() - 1, first_rounds.len());
        let mut checked = 0;
        for (revocation, first_round) in first_rounds {
            // The owner did not see these revocations in the round before, so the revoker saw it.
            while checked < revocation {
                checked += 1;
                let seen = last_seen[checked as usize];
                assert!(seen + 1 >= first_round, "revocation {checked}: {seen}, {first_round}");
            }
        }
    }
}
