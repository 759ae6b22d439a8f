//! Fits one parameter of a simulated machine, so that the simulation reproduces the published
//! figure of the one cell that was chosen for calibration.

use std::io;
use tickless_machine::spec::Spec;

/// The search ends when the simulated figure differs from the published one by at most this part of
/// the published figure.
const CLOSE: f64 = 0.001;
/// The number of attempts, each of which is a simulation. A few suffice, because figures grow
/// nearly linearly with the parameter that is fitted to them.
const TRIES: u32 = 8;

/// Returns the machine with the parameter `key` set so that `cell`, which simulates a figure,
/// returns `wanted` or a value as close to it as possible. `cell` must grow or fall monotonically
/// with the parameter.
pub fn fitted(
    spec: &Spec,
    key: &str,
    wanted: f64,
    cell: impl Fn(&Spec) -> io::Result<f64>,
) -> io::Result<Spec> {
    // A machine's file accepts no price (time of an operation) of zero, so the least value is
    // slightly above zero.
    const LEAST: f64 = 1e-3;
    let off = |value: f64| -> io::Result<f64> { Ok(cell(&spec.with(key, value))? - wanted) };
    let is_close = |off: f64| off.abs() <= CLOSE * wanted.abs();
    let mut last = spec.value(key).max(LEAST);
    let mut last_off = off(last)?;
    if is_close(last_off) {
        return Ok(spec.clone());
    }
    let mut best = (last_off.abs(), last);
    let mut next = last * 1.1;
    for _ in 0..TRIES {
        let next_off = off(next)?;
        if next_off.abs() < best.0 {
            best = (next_off.abs(), next);
        }
        let slope = (next_off - last_off) / (next - last);
        if is_close(next_off) || slope == 0.0 || !slope.is_finite() {
            break;
        }
        (last, last_off) = (next, next_off);
        next = (next - next_off / slope).clamp(LEAST, 10.0 * next);
        if next == last {
            break;
        }
    }
    Ok(spec.with(key, best.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickless_machine::machines;

    /// Goal: the parameter is found on linear and on nonlinear curves; an unreachable value is
    /// approached.
    #[test]
    fn numbers_are_found() {
        let spec = machines::named("x5675-2s").unwrap().unwrap();
        let key = "workload.pipe_ns";
        let find = |wanted, cell: fn(f64) -> f64| {
            let cell = |spec: &Spec| Ok(cell(spec.value(key)));
            fitted(&spec, key, wanted, cell).unwrap().value(key)
        };
        assert!((find(5000.0, |x| 1000.0 + 4.0 * x) - 1000.0).abs() < 2.0);
        assert!((find(5000.0, |x| x * x) - 5000_f64.sqrt()).abs() < 0.1);
        assert!(find(100.0, |x| 1000.0 + 4.0 * x) <= 0.002, "nothing is the least");
    }
}
