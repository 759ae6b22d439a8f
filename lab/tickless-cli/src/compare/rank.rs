//! The exact rank test of Mann and Whitney over the turns of two results.

/// Returns how likely two groups differ in rank at least as much as `a` and `b`, in either
/// direction, if the turns of both are drawn from one distribution. The test looks at the order of
/// the values alone, so one turn that was disturbed does not hide a shift of the others. Equal
/// values share their ranks. Takes about 2 N^4 additions for N turns in all.
pub(super) fn by_chance(a: &[f64], b: &[f64]) -> f64 {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    // Twice the rank, which is an integer for equal values too.
    let rank = |value: &f64| -> usize {
        let places = |other: &f64| usize::from(other < value) + usize::from(other <= value);
        1 + all.iter().map(places).sum::<usize>()
    };
    let ranks: Vec<usize> = all.iter().map(rank).collect();
    let total: usize = ranks.iter().sum();
    // In how many ways a group of so many turns has ranks with this sum.
    let mut ways = vec![vec![0.0; total + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for rank in &ranks {
        reached += rank;
        for size in (1..=a.len()).rev() {
            let (fewer, ways) = ways.split_at_mut(size);
            let fewer = &fewer[size - 1][..=reached - rank];
            ways[0][*rank..].iter_mut().zip(fewer).for_each(|(ways, fewer)| *ways += fewer);
        }
    }
    let expected = total * a.len();
    let off = |sum: usize| (sum * all.len()).abs_diff(expected);
    let seen = off(ranks[..a.len()].iter().sum());
    let ways = &ways[a.len()];
    let as_far = ways.iter().enumerate().filter(|(sum, _)| off(*sum) >= seen);
    as_far.map(|(_, ways)| ways).sum::<f64>() / ways.iter().sum::<f64>()
}

/// Returns the least value of [`by_chance`] for groups of these sizes: all turns of one are above
/// all of the other, as in two of all ways to choose the first.
pub(super) fn by_chance_least(a: usize, b: usize) -> f64 {
    (1..=a).fold(2.0, |chance, turn| chance * turn as f64 / (b + turn) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source of the figures: the published table of the test's critical values, and counting by
    /// hand.
    #[test]
    fn the_test_is_exact() {
        assert_eq!(by_chance(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 2.0 / 20.0);
        assert_eq!(by_chance(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0]), 4.0 / 20.0);
        assert_eq!(by_chance(&[0.0; 10], &[1.0; 10]), 2.0 / 184_756.0);
        assert!((by_chance_least(10, 10) * 184_756.0 - 2.0).abs() < 1e-9);
        assert!((by_chance_least(4, 2) * 15.0 - 2.0).abs() < 1e-9);
        // With equal values: of the six ways to choose two of 0, 0, 0, 1, three are like this one.
        assert_eq!(by_chance(&[0.0, 0.0], &[0.0, 1.0]), 1.0);
        assert_eq!(by_chance(&[0.0, 0.0], &[1.0, 1.0]), 2.0 / 6.0);
    }
}
