//! What the platform needs of a system, from the standard library alone. Files are named after
//! those of Linux whose place they take.

pub mod cpu;
pub mod driver;
pub mod membarrier;
pub mod system_clock;
pub mod wait;
