//! W6: bytes per pending timer, counted at the allocator.

use super::{Choice, short};
use crate::effort::Effort;
use crate::memory::bytes_in_use;
use crate::peers::tables;
use crate::random::Random;
use crate::report::{Cell, Table};
use crate::sample::Figure;

/// The timers of these are those of the row above.
const SAME: [&str; 2] = ["reads the clock", "in batches"];

pub fn run(effort: &Effort, choice: &Choice) -> Vec<Table> {
    let about = "Heap: how much more the program allocates with the timers than without, less a \
                 vector of handles. Handle: what the user keeps for each timer.";
    let title = format!("bytes per pending timer, of {}", short(effort.bulk));
    let mut table = Table::new("W6", &title, about);
    let (heap, handle) = (table.column("heap"), table.column("handle"));
    let after = Random::new().many(effort.bulk, 600, 1200);
    let peers = tables().into_iter().filter(|peer| choice.wants(peer.name));
    for peer in peers.filter(|peer| !SAME.iter().any(|same| peer.name.contains(same))) {
        let mut timers = (peer.new)();
        let before = bytes_in_use();
        timers.add_all(&after);
        let grown = bytes_in_use() - before;
        assert_eq!(timers.pending(), after.len());
        let handles = peer.handle_bytes * after.len().next_power_of_two();
        let each = (grown - handles as f64) / after.len() as f64;
        table.put(peer.name, heap, bytes(each));
        table.put(peer.name, handle, bytes(peer.handle_bytes as f64));
    }
    vec![table]
}

fn bytes(count: f64) -> Option<Cell> {
    Figure::of(vec![count]).map(|figure| Cell { figure, unit: "B" })
}
