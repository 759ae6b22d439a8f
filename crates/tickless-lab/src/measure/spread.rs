//! A figure that was measured several times.

use crate::studies::Figure;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// Summarizes these values. All three numbers are not-a-number if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let [Some(&low), Some(&high)] = [values.first(), values.last()] else {
            return Spread::exactly(f64::NAN);
        };
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Spread { median, low, high }
    }

    pub const fn exactly(value: f64) -> Spread {
        Spread { median: value, low: value, high: value }
    }

    /// Summarizes the ratios of two variants, one ratio for each turn in which both were measured.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Spread {
        Spread::of(above.iter().zip(below).map(|(above, below)| above / below))
    }
}

impl From<Spread> for Figure {
    fn from(Spread { median, low, high }: Spread) -> Figure {
        Figure { value: median, low, high }
    }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 9.0]), Spread { median: 3.0, low: 1.0, high: 9.0 });
        assert_eq!(Spread::of([4.0, 1.0, 9.0, 2.0]).median, 3.0);
        assert_eq!(Spread::of([5.0]), Spread::exactly(5.0));
        assert!(Spread::of([]).median.is_nan());
        assert_eq!(Spread::of_ratios(&[4.0, 9.0], &[2.0, 3.0]).median, 2.5);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
    }
}
