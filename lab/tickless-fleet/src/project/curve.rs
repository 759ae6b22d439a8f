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

impl Projected {
    /// Finds for each policy, over all numbers of CPUs, what limits it first.
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

/// Describes up to how many CPUs a policy scales, and which part of the timer code limits it.
fn limit(policy: &str, points: &[&Projection]) -> Option<String> {
    let mut points = points.to_vec();
    points.sort_by_key(|point| point.cpus);
    // A CPU that falls behind the trace by more than 5 % of its duration is overloaded, even if no
    // part of the timer code takes much of the time.
    let is_behind = |point: &&&Projection| point.behind_ns > 0.05e9 * point.seconds;
    let mut text = match points.iter().rfind(|point| !is_behind(point)) {
        Some(point) => format!(
            "{policy}: scales to {} CPUs: {:.2} % of the time in timer code, {} first ({:.2} %)",
            point.cpus, point.percent.timer_code, point.limit.what, point.limit.percent
        ),
        None => format!("{policy}: does not scale"),
    };
    if let Some(point) = points.iter().find(is_behind) {
        text += &format!(
            "; at {} CPUs the machine cannot follow, {} first ({:.1} %), and is {:.0} us behind",
            point.cpus,
            point.limit.what,
            point.limit.percent,
            point.behind_ns / 1e3
        );
    }
    Some(text)
}
