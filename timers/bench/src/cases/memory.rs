//! W6: bytes per pending timer, counted at the allocator, and in memory.

use super::{Choice, short};
use crate::allocator::bytes_in_use;
use crate::effort::Effort;
use crate::peers::tables;
use crate::random::Random;
use crate::report::Table;
use crate::sample::{Figure, IS_TWIN};

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Heap: how much more the program allocates with the timers than without, less a \
                 vector of handles. Resident: how much of it is in memory: what is reserved and \
                 was never used is not. Handle: what the user keeps for each timer. LocalTimers \
                 holds a value of 8 bytes for each timer, which is in its figures.";
    let title = format!("bytes per pending timer, of {}", short(effort.bulk));
    let mut table = Table::new("W6", &title, about);
    let (heap, resident) = (table.column("heap"), table.column("resident"));
    let handle = table.column("handle");
    let after = Random::new().many(effort.bulk, 600, 1200);
    let peers = tables().into_iter().filter(|peer| choice.wants(peer.name));
    for peer in peers.filter(|peer| !peer.name.contains("reads the clock")) {
        let mut timers = (peer.new)();
        let (resident_before, before) = (bytes_resident(), bytes_in_use());
        timers.add_all(&after);
        let (grown, resident_now) = (bytes_in_use() - before, bytes_resident());
        assert_eq!(timers.pending(), after.len());
        let handles = peer.handle_bytes * after.len().next_power_of_two();
        let each = (grown - handles as i64) as f64 / after.len() as f64;
        // The allocator counts the calling thread's memory; the other build uses a worker's.
        table.put(peer.name, heap, "B", Figure::of(vec![each]).filter(|_| !IS_TWIN));
        if let (Some(before), Some(now)) = (resident_before, resident_now) {
            let each = (now - before) / after.len() as f64 - peer.handle_bytes as f64;
            table.put(peer.name, resident, "B", Figure::of(vec![each]));
        }
        table.put(peer.name, handle, "B", Figure::of(vec![peer.handle_bytes as f64]));
    }
    vec![table]
}

/// Resident bytes after the allocator has returned its free memory; `None` if unreadable.
fn bytes_resident() -> Option<f64> {
    give_back();
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as f64)
}

#[cfg(target_env = "gnu")]
fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(keep: usize) -> std::ffi::c_int;
    }
    // SAFETY: it may be called at any time.
    unsafe { malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}
