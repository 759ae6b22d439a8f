//! How a measurement says how far it is.

/// Told how far a measurement is, between two measurements and never within one: whatever this
/// does is not in the figures. What does not measure several things need not be told.
pub trait Progress: Sync {
    /// So many steps lie ahead, of this.
    fn begin(&self, what: &'static str, steps: usize);
    /// One step is done.
    fn step(&self);
    /// All steps are done, in this way.
    fn done(&self, how: &str);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct Hidden;

impl Progress for Hidden {
    fn begin(&self, _: &'static str, _: usize) {}
    fn step(&self) {}
    fn done(&self, _: &str) {}
}
