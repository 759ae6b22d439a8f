//! The progress of a measurement.

/// Receives the progress of a measurement, to show it. Its methods are called between two
/// measurements and never within one, so their cost is not in the figures.
pub trait Progress: Sync {
    /// Called when a series of `steps` steps begins. `what` is the name of the series for the user.
    fn begin(&self, what: &'static str, steps: usize);
    fn step(&self);
    /// Called when the series has ended. `how` is a word for the user, such as "failed".
    fn done(&self, how: &str);
}

#[derive(Clone, Copy, Debug)]
pub struct Hidden;

impl Progress for Hidden {
    fn begin(&self, _: &'static str, _: usize) {}
    fn step(&self) {}
    fn done(&self, _: &str) {}
}
