//! Repetitions of several ways to do a thing, in turn.

/// Does every way once in each of so many turns: forwards in the first, backwards in the next.
/// Hands back, for each way, what its turns gave, in the order of the turns.
///
/// `measure` gets the number of the way. An error ends it.
pub fn interleave<T, E>(
    ways: usize,
    turns: usize,
    mut measure: impl FnMut(usize) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut results: Vec<Vec<T>> = (0..ways).map(|_| Vec::with_capacity(turns)).collect();
    for turn in 0..turns {
        for place in 0..ways {
            let way = if turn % 2 == 0 { place } else { ways - 1 - place };
            results[way].push(measure(way)?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each way in each turn, in alternating order, so that drift cancels out.
    #[test]
    fn turns_go_forwards_and_backwards() {
        let mut order = Vec::new();
        let mut clock = 0;
        let results = interleave(3, 2, |way| {
            order.push(way);
            clock += 1;
            Ok::<_, ()>(clock)
        });
        assert_eq!(order, [0, 1, 2, 2, 1, 0]);
        assert_eq!(results.unwrap(), [[1, 6], [2, 5], [3, 4]]);
        assert_eq!(interleave(2, 2, |way| if way == 1 { Err(way) } else { Ok(()) }), Err(1));
    }
}
