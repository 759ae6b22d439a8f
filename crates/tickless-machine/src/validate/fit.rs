//! Sets the prices in a real machine's file from what was measured on it.
//!
//! Prices that can be measured by themselves are taken as they are. The other three are fitted one
//! after the other, each so that one scene takes as long on the simulated machine as on the real
//! one: the transfer of a cache line from a scene that reads lines which another CPU has written,
//! the time for which a core keeps a line from the ping-pong scene, and the computation in a
//! critical section from arming and cancelling a CPU's own timer. The fit uses no other
//! measurement, so all other scenes test the model.

use super::{Scene, simulate};
use crate::spec::{Origin, Parameter, Spec};
use std::io;

/// The measured times of three scenes (small concurrent benchmarks) on a real machine, in
/// nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    pub transfer: f64,
    pub round_trip: f64,
    pub own_timer: f64,
}

const ROUNDS: u64 = 200;
const NS_MAX: f64 = 1_000.0;
/// The steps of the bisection: enough to find a price to a thousandth of a nanosecond.
const HALVINGS: u32 = 20;

pub fn fit(spec: &Spec, measured: Measured) -> io::Result<Spec> {
    let without_hold = fitted(spec, "line.hold_ns", 0.0);
    let spec = solve(|ns| with_transfer(&without_hold, ns), Scene::Transfer, measured.transfer)?;
    let with_hold = |ns| fitted(&spec, "line.hold_ns", ns);
    let spec = solve(with_hold, Scene::PingPong, measured.round_trip)?;
    with_section(&spec, measured.own_timer)
}

/// Returns the machine with the price at which the simulated scene takes `should_ns`. The scene's
/// time grows with the price, so bisection finds the price. If no price fits, returns the lowest or
/// the highest one.
fn solve(priced: impl Fn(f64) -> Spec, scene: Scene, should_ns: f64) -> io::Result<Spec> {
    let (mut low, mut high) = (0.0, NS_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if simulate::play(&priced(middle), scene, ROUNDS, 1)? < should_ns {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(priced(if high < 0.01 { 0.0 } else { high }))
}

/// Sets the price of a transfer for all three distances between CPUs, because a measurement between
/// two CPUs shows only one of them. The price is never zero, which the file does not allow.
fn with_transfer(spec: &Spec, ns: f64) -> Spec {
    let ns = ns.max(0.01);
    ["line.node_ns", "line.near_ns", "line.far_ns"]
        .into_iter()
        .fold(spec.clone(), |spec, key| fitted(&spec, key, ns))
}

/// Sets the price of the computation in a critical section. Without it, a simulated arming and
/// cancelling together take too little time. Each of them has one critical section, so the price is
/// half of the missing time.
fn with_section(spec: &Spec, own_timer: f64) -> io::Result<Spec> {
    let without = fitted(spec, "cpu.section_ns", 0.0);
    let bare = simulate::play(&without, Scene::OwnTimer, ROUNDS, 1)?;
    Ok(fitted(spec, "cpu.section_ns", ((own_timer - bare) / 2.0).max(0.0)))
}

/// Sets a price, rounded to picoseconds, and records as its origin the scene to which it was
/// fitted.
fn fitted(spec: &Spec, key: &str, value: f64) -> Spec {
    let scene = match key {
        "cpu.section_ns" => Scene::OwnTimer,
        "line.hold_ns" => Scene::PingPong,
        _ => Scene::Transfer,
    };
    let value = (value * 1e3).round() / 1e3;
    let origin = Origin::Fitted(scene.name().to_string());
    spec.with_parameter(key, Parameter { value, origin })
}
