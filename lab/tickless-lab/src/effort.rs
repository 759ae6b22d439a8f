//! How long a measurement may take.

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// The study takes about a second, which only shows that it works.
    Quick,
    /// The study takes about twenty seconds. It makes half as many repetitions as with `Normal`.
    Brief,
    /// The study takes up to a minute. Its figures are reliable.
    #[default]
    Normal,
    Full,
}

impl Effort {
    /// Returns one of the three arguments: the one for this effort. For `Brief`, returns `normal`.
    pub fn pick<T>(self, quick: T, normal: T, full: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Brief | Effort::Normal => normal,
            Effort::Full => full,
        }
    }

    /// Returns the number of repetitions for this effort. `Brief` has half as many as `Normal`.
    pub fn turns(self, quick: usize, normal: usize, full: usize) -> usize {
        match self {
            Effort::Brief => normal.div_ceil(2),
            _ => self.pick(quick, normal, full),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Brief => "brief",
            Effort::Normal => "normal",
            Effort::Full => "full",
        }
    }
}
