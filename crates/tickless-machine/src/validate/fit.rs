//! Prices of a real machine's file, from what was measured on it.
//!
//! Prices that can be measured by themselves are taken as they are. The others are set one after
//! the other, each so that one scene takes as long on the simulated machine as it did for real: a
//! transfer from lines that another CPU has written, how long a core keeps a line from the
//! ping-pong of one word, the private work of a critical section from arming and cancelling one's
//! own timer. Nothing else is looked at.

use super::{Part, simulate};
use crate::spec::{Origin, Parameter, Spec};
use std::io;

/// What the fit may see, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen {
    /// A line of [`Part::Transfer`].
    pub transfer: f64,
    /// A round trip of [`Part::PingPong`].
    pub round_trip: f64,
    /// One [`Part::OwnTimer`].
    pub own_timer: f64,
}

/// Rounds of a play that is only there for the fit.
const ROUNDS: u64 = 200;
/// No transfer takes longer, and no core is believed to keep a line for longer.
const NS_MAX: f64 = 1_000.0;
/// Halvings that find a price: to a thousandth of a nanosecond.
const HALVINGS: u32 = 20;

/// The machine with a transfer, a hold time and a section that fit what was seen.
pub fn fit(spec: &Spec, seen: Seen) -> io::Result<Spec> {
    let kept = fitted(spec, "line.hold_ns", 0.0);
    let spec = solve(|ns| transferring(&kept, ns), Part::Transfer, seen.transfer)?;
    let spec = solve(|ns| fitted(&spec, "line.hold_ns", ns), Part::PingPong, seen.round_trip)?;
    with_section(&spec, seen.own_timer)
}

/// The machine whose price makes a scene take that long. It grows with the price, so halving
/// finds it; nothing or the most, if it is beyond them.
fn solve(priced: impl Fn(f64) -> Spec, part: Part, wanted: f64) -> io::Result<Spec> {
    let (mut low, mut high) = (0.0, NS_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if simulate::play(&priced(middle), part, ROUNDS, 1)? < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    // A price that is not needed at all is none.
    Ok(priced(if high < 0.01 { 0.0 } else { high }))
}

/// All distances alike: two CPUs show one. A transfer always takes something.
fn transferring(spec: &Spec, ns: f64) -> Spec {
    let ns = ns.max(0.01);
    ["line.node_ns", "line.near_ns", "line.far_ns"]
        .into_iter()
        .fold(spec.clone(), |spec, key| fitted(&spec, key, ns))
}

/// Two sections, that of the arming and that of the cancel, take what is missing without them.
fn with_section(spec: &Spec, own_timer: f64) -> io::Result<Spec> {
    let without = fitted(spec, "cpu.section_ns", 0.0);
    let bare = simulate::play(&without, Part::OwnTimer, ROUNDS, 1)?;
    Ok(fitted(spec, "cpu.section_ns", ((own_timer - bare) / 2.0).max(0.0)))
}

fn fitted(spec: &Spec, key: &str, value: f64) -> Spec {
    let cell = match key {
        "cpu.section_ns" => Part::OwnTimer.name(),
        "line.hold_ns" => Part::PingPong.name(),
        _ => Part::Transfer.name(),
    };
    // Three digits behind the point are more than anybody measures.
    let value = (value * 1e3).round() / 1e3;
    spec.with_parameter(key, Parameter { value, origin: Origin::Fitted(cell.to_string()) })
}
