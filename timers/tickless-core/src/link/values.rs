//! Values by slot number: what the user of `LocalTimers` attaches to each timer, stored apart from
//! the timers' own records.
//!
//! Storing a value takes its own size and one bit; an `Option` would take another word for most
//! types. The bits record which places hold a value, so callers can pass any slot number.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

pub(crate) struct Values<T> {
    places: Vec<MaybeUninit<T>>,
    /// A bit for each place. It is set if and only if the place is initialised; no bit is set
    /// beyond the last place.
    held: Vec<u64>,
}

impl<T> Values<T> {
    pub(crate) const fn new() -> Values<T> {
        Values { places: Vec::new(), held: Vec::new() }
    }

    /// Allocates room for the places below `places`.
    pub(crate) fn reserve(&mut self, places: usize) {
        self.places.reserve_exact(places.saturating_sub(self.places.len()));
        self.held.reserve_exact(places.div_ceil(64).saturating_sub(self.held.len()));
    }

    pub(crate) fn put(&mut self, place: usize, value: T) -> Option<T> {
        let old = self.take(place);
        if place >= self.places.len() {
            self.places.resize_with(place + 1, MaybeUninit::uninit);
            self.held.resize(place / 64 + 1, 0);
        }
        self.places[place].write(value);
        self.held[place / 64] |= 1 << (place % 64);
        old
    }

    pub(crate) fn take(&mut self, place: usize) -> Option<T> {
        if !self.holds(place) {
            return None;
        }
        self.held[place / 64] &= !(1 << (place % 64));
        // SAFETY: the place's bit was set, so the place is initialised. The bit is clear now, so
        // the value is not taken again.
        Some(unsafe { self.places[place].assume_init_read() })
    }

    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        if !self.holds(place) {
            return None;
        }
        // SAFETY: the place's bit is set, so the place exists and is initialised.
        Some(unsafe { self.places.get_unchecked(place).assume_init_ref() })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        if !self.holds(place) {
            return None;
        }
        // SAFETY: the place's bit is set, so the place exists and is initialised.
        Some(unsafe { self.places.get_unchecked_mut(place).assume_init_mut() })
    }

    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        super::prefetch(&self.places, place);
    }

    #[inline]
    fn holds(&self, place: usize) -> bool {
        self.held.get(place / 64).is_some_and(|held| held >> (place % 64) & 1 == 1)
    }
}

impl<T> Drop for Values<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for place in 0..self.places.len() {
                drop(self.take(place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_places_hold_nothing() {
        let mut values = Values::new();
        assert_eq!((values.take(0), values.get(64)), (None::<u32>, None));
        assert_eq!(values.put(70, 7), None);
        for place in [0, 69, 71, 127, 128, usize::MAX] {
            assert_eq!(values.take(place), None);
        }
        assert_eq!(values.get(70), Some(&7));
        assert_eq!(values.put(70, 8), Some(7));
        assert_eq!((values.take(70), values.take(70)), (Some(8), None));
    }
}
