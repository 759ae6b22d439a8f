//! The projections of one trace onto simulated machines with different numbers of CPUs, and the
//! part of the timer code that first becomes a bottleneck.

use super::figures::Projection;
use serde::Serialize;
use tickless_machine::spec::Spec;
use tickless_trace::Trace;

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Projected {
    pub trace: String,
    pub trace_cpus: u16,
    pub machine: String,
    pub seed: u64,
    pub points: Vec<Projection>,
    pub limits: Vec<String>,
}

/// A part of the timer code counts as a bottleneck if it takes at least this share of all CPUs'
/// time, in percent.
const LIMITS_FROM: f64 = 1.0;

impl Projected {
    pub fn new(trace: &Trace, machine: &Spec, seed: u64, points: Vec<Projection>) -> Projected {
        let mut policies: Vec<&'static str> = Vec::new();
        for point in &points {
            if !policies.contains(&point.policy) {
                policies.push(point.policy);
            }
        }
        let limits = policies.iter().filter_map(|policy| {
            let of_policy: Vec<&Projection> =
                points.iter().filter(|point| point.policy == *policy).collect();
            limit(policy, &of_policy)
        });
        Projected {
            trace: trace.path.clone(),
            trace_cpus: trace.cpus,
            machine: machine.name.clone(),
            seed,
            limits: limits.collect(),
            points,
        }
    }
}

fn limit(policy: &str, points: &[&Projection]) -> Option<String> {
    let mut points = points.to_vec();
    points.sort_by_key(|point| point.cpus);
    let largest = points.last()?;
    let found = points.iter().find(|point| point.limit.percent >= LIMITS_FROM);
    let mut text = match found {
        Some(point) => format!(
            "{policy}: {} first, {:.1} % of the time at {} CPUs",
            point.limit.what, point.limit.percent, point.cpus
        ),
        None => format!(
            "{policy}: nothing takes 1 % of the time up to {} CPUs; the most is {}, {:.2} %",
            largest.cpus, largest.limit.what, largest.limit.percent
        ),
    };
    // A CPU that falls behind the trace by more than 5 % of its duration is overloaded, even if no
    // part of the timer code takes much of the time.
    if let Some(point) = points.iter().find(|point| point.behind_ns > 0.05e9 * point.seconds) {
        text += &format!(
            "; at {} CPUs the machine cannot follow, and is {:.0} us behind",
            point.cpus,
            point.behind_ns / 1e3
        );
    }
    Some(text)
}
