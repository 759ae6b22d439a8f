//! The progress of a measurement.

/// Receives the progress of a measurement. It is called between two measurements and never within
/// one, so its cost is not in the figures.
pub trait Progress: Sync {
    /// A series of this many steps begins.
    fn begin(&self, what: &'static str, steps: usize);
    /// One step is done.
    fn step(&self);
    /// All steps are done; `how` is a word such as "failed".
    fn done(&self, how: &str);
}

/// Ignores progress.
#[derive(Clone, Copy, Debug)]
pub struct Hidden;

impl Progress for Hidden {
    fn begin(&self, _: &'static str, _: usize) {}
    fn step(&self) {}
    fn done(&self, _: &str) {}
}
