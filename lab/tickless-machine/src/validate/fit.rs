//! Sets the prices in a real machine's file from what was measured on it.
//!
//! Prices that can be measured by themselves are taken as they are. The others are fitted one after
//! the other, each so that one scene takes as long on the simulated machine as on the real one: the
//! transfer of a cache line from a scene that reads lines which another CPU has written, and the
//! computation in a critical section from arming and cancelling a CPU's own timer. Two variants of
//! the first scene decide whether a read takes a line away, and how reads overlap. The ping-pong
//! scene decides how a line passes between CPUs that wait for it: if it takes longer than two
//! transfers each way, a core keeps a line for a while; if it takes less, a request that has waited
//! needs only a part of a transfer. The fit uses nothing else, so other scenes test the model.

use super::{Scene, simulate};
use crate::spec::{Origin, Parameter, Spec};
use std::io;

const ROUNDS: u64 = 200;
const NS_MAX: f64 = 1_000.0;
/// The largest fraction of a transfer that its request can take. The line still has to travel from
/// its owner to the core that requests it.
const REQUEST_SHARE_MAX: f64 = 0.8;
/// The number of steps of a bisection: enough to find a price to a thousandth of a nanosecond.
const HALVINGS: u32 = 20;

/// Finds the parameters that no program can measure alone, by simulating until scenes take as long
/// as on the real machine: `measured` returns the times of [`Scene::FITTED`] there, in ns.
pub fn fit(spec: &Spec, measured: impl Fn(Scene) -> f64) -> io::Result<Spec> {
    let unset = ["line.hold_ns", "line.request_share", "line.migrates", "line.overlap_ns"];
    let spec = unset.iter().fold(spec.clone(), |spec, key| fitted(&spec, key, 0.0));
    let spec =
        solve(|ns| with_transfer(&spec, ns), Scene::Transfer, NS_MAX, measured(Scene::Transfer))?;
    let spec = with_migration(spec, measured(Scene::TransferAndAdd))?;
    let spec = with_overlap(spec, measured(Scene::TransferAhead))?;
    let round_trip = measured(Scene::PingPong);
    let spec = if simulate::play(&spec, Scene::PingPong, ROUNDS, 1)? < round_trip {
        let with_hold = |ns| fitted(&spec, "line.hold_ns", ns);
        solve(with_hold, Scene::PingPong, NS_MAX, round_trip)?
    } else {
        let without = |share: f64| fitted(&spec, "line.request_share", REQUEST_SHARE_MAX - share);
        solve(without, Scene::PingPong, REQUEST_SHARE_MAX, round_trip)?
    };
    with_section(&spec, measured(Scene::OwnTimer))
}

/// Finds the value of a parameter, from 0 to `most`, with which the simulated scene takes
/// `should_ns`. Returns the machine with that value, which `priced` makes. The scene's time grows
/// with the value, so bisection finds it. If no value fits, takes 0 or `most`.
fn solve(
    priced: impl Fn(f64) -> Spec,
    scene: Scene,
    most: f64,
    should_ns: f64,
) -> io::Result<Spec> {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if simulate::play(&priced(middle), scene, ROUNDS, 1)? < should_ns {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(priced(if high < most * 1e-5 { 0.0 } else { high }))
}

/// Sets the price of a transfer for all three distances between CPUs, because a measurement between
/// two CPUs shows only one of them. The price is never zero, which the file does not allow.
fn with_transfer(spec: &Spec, ns: f64) -> Spec {
    let ns = ns.max(0.01);
    ["line.node_ns", "line.near_ns", "line.far_ns"]
        .into_iter()
        .fold(spec.clone(), |spec, key| fitted(&spec, key, ns))
}

/// Decides whether a read of a line that another core has written takes it away from that core:
/// whichever makes the simulated scene's time closer to the measured one.
fn with_migration(spec: Spec, measured: f64) -> io::Result<Spec> {
    let migrates = fitted(&spec, "line.migrates", 1.0);
    let [off_shared, off_taken] = [
        simulate::play(&spec, Scene::TransferAndAdd, ROUNDS, 1)?,
        simulate::play(&migrates, Scene::TransferAndAdd, ROUNDS, 1)?,
    ]
    .map(|simulated| (simulated - measured).abs());
    Ok(if off_taken < off_shared { migrates } else { spec })
}

/// Sets the delay between a core's requests for two independent lines. Leaves it at zero if reads
/// take about as long as if each waited for the one before.
fn with_overlap(spec: Spec, measured: f64) -> io::Result<Spec> {
    const ALMOST: f64 = 0.95;
    if measured > ALMOST * simulate::play(&spec, Scene::TransferAhead, ROUNDS, 1)? {
        return Ok(spec);
    }
    let priced = |ns: f64| fitted(&spec, "line.overlap_ns", ns.max(0.01));
    solve(priced, Scene::TransferAhead, NS_MAX, measured)
}

/// Sets the price of the computation in a critical section. Without it, a simulated arming and
/// cancelling together take too little time. Each of them has one critical section, so the price is
/// half of the missing time.
fn with_section(spec: &Spec, own_timer: f64) -> io::Result<Spec> {
    let without = fitted(spec, "cpu.section_ns", 0.0);
    let bare = simulate::play(&without, Scene::OwnTimer, ROUNDS, 1)?;
    Ok(fitted(spec, "cpu.section_ns", ((own_timer - bare) / 2.0).max(0.0)))
}

/// Sets a price, rounded to ps, and records as its origin the scene to which it was fitted.
fn fitted(spec: &Spec, key: &str, value: f64) -> Spec {
    let scene = match key {
        "cpu.section_ns" => Scene::OwnTimer,
        "line.migrates" => Scene::TransferAndAdd,
        "line.overlap_ns" => Scene::TransferAhead,
        "line.hold_ns" | "line.request_share" => Scene::PingPong,
        _ => Scene::Transfer,
    };
    let value = (value * 1e3).round() / 1e3;
    let origin = Origin::Fitted(scene.name().to_string());
    spec.with_parameter(key, Parameter { value, origin })
}
