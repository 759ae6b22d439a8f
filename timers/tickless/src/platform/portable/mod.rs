//! Parts of the platform that use the standard library alone, for systems other than Linux. Each
//! file replaces the file of the same name in the folder above.

pub mod cpu;
pub mod driver;
pub mod membarrier;
pub mod system_clock;
pub mod wait;
