//! Repetitions of several variants of a measurement, in turn.

use crate::progress::Progress;

/// Measures every variant once in each turn: forwards in the first turn, backwards in the next.
/// Returns the results of each variant in the order of the turns. `progress` shows the user under
/// the name `what` how many measurements are done.
///
/// `measure` gets the number of the variant. An error ends the measurement.
pub fn interleave<T, E>(
    what: &'static str,
    ways: usize,
    turns: usize,
    progress: &dyn Progress,
    mut measure: impl FnMut(usize) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    progress.begin(what, ways * turns);
    let mut results: Vec<Vec<T>> = (0..ways).map(|_| Vec::with_capacity(turns)).collect();
    for turn in 0..turns {
        for place in 0..ways {
            let way = if turn % 2 == 0 { place } else { ways - 1 - place };
            results[way].push(measure(way)?);
            progress.step();
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Hidden;

    /// Goal: each variant is measured once in each turn, and the order alternates, so that drift
    /// cancels out.
    #[test]
    fn turns_go_forwards_and_backwards() {
        let mut order = Vec::new();
        let mut clock = 0;
        let results = interleave("a test", 3, 2, &Hidden, |way| {
            order.push(way);
            clock += 1;
            Ok::<_, ()>(clock)
        });
        assert_eq!(order, [0, 1, 2, 2, 1, 0]);
        assert_eq!(results.unwrap(), [[1, 6], [2, 5], [3, 4]]);
        let fail = |way| if way == 1 { Err(way) } else { Ok(()) };
        assert_eq!(interleave("a test", 2, 2, &Hidden, fail), Err(1));
    }
}
