//! The queues of pending timers. They use neither locks nor clocks: callers pass the time.
//!
//! | file | holds | contract |
//! |---|---|---|
//! | `wheel` | the timer wheel, for coarse timers | W1-W6, D5-D7 |
//! | `tree` | the ordered queue, a red-black tree | W1, W4, W6 |
//! | `windows` | precise timers: two ordered queues, so that a pass over them ends | W4, R7 |

pub mod tree;
pub mod wheel;
pub(crate) mod windows;
