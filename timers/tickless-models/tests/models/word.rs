//! Words of the core over a checker's atomics.

/// Implements `Word` for a type that is made by `$new`, and whose method `turn` returns the
/// checker's `AtomicU64` for one use.
macro_rules! word {
    ($word:ident, $new:expr) => {
        impl Word for $word {
            fn new(value: u64) -> Self {
                $new(value)
            }

            fn load(&self, order: Ordering) -> u64 {
                self.turn().load(order)
            }

            fn store(&self, value: u64, order: Ordering) {
                self.turn().store(value, order);
            }

            fn compare_exchange(
                &self,
                current: u64,
                new: u64,
                success: Ordering,
                failure: Ordering,
            ) -> Result<u64, u64> {
                self.turn().compare_exchange(current, new, success, failure)
            }

            fn swap(&self, value: u64, order: Ordering) -> u64 {
                self.turn().swap(value, order)
            }

            fn add(&self, value: u64, order: Ordering) -> u64 {
                self.turn().fetch_add(value, order)
            }
        }
    };
}
pub(crate) use word;
