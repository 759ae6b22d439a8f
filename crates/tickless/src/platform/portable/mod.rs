//! What the platform needs of a system, from the standard library alone. Files are named after
//! those of Linux whose place they take.

pub(crate) mod cpu;
pub(crate) mod driver;
pub(crate) mod membarrier;
pub(crate) mod system_clock;
pub(crate) mod wait;
