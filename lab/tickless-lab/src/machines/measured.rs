//! Describes this host as a simulated machine. Parameters that a program can measure are measured.
//! The others keep the values that are assumed in the file of the machine `host`.

use super::{micro, transfer::transfer};
use crate::effort::Effort;
use crate::error::LabError;
use crate::machines::find::find;
use crate::measure::{self, Spread};
use crate::progress::Progress;
use crate::text::figure;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use tickless_machine::spec::{Origin, Parameter, Spec};

const TEMPLATE: &str = "host";

/// Returns the first and the last CPU that this process may use. One alone is an error.
fn ends() -> Result<[usize; 2], LabError> {
    match measure::cpus()[..] {
        [first, .., last] => Ok([first, last]),
        _ => Err(LabError::Request {
            what: "this takes two CPUs, and there is one that this process may use; give it more"
                .to_string(),
        }),
    }
}

/// If other programs use more than this percentage of the CPUs' time, they disturb the measurement.
const BUSY_PERCENT: f64 = 10.0;

const WATCHED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfBusy {
    Refuse,
    Measure,
}

/// Measures this host for a machine's file that can be passed on to others. `if_busy` decides what
/// happens if other programs keep the CPUs busy: an error, or a remark in the description.
pub fn quiet_host(
    effort: Effort,
    if_busy: IfBusy,
    progress: &dyn Progress,
) -> Result<Spec, LabError> {
    let cpus = ends()?;
    let busy = measure::busy_percent(WATCHED).filter(|percent| *percent > BUSY_PERCENT);
    match busy {
        Some(percent) if if_busy == IfBusy::Refuse => {
            let what = format!(
                "this machine is busy with other work ({percent:.0} % of its CPUs' time; at most \
                 {BUSY_PERCENT} % is quiet), so its prices would be wrong; wait, or measure \
                 all the same with --anyway"
            );
            Err(LabError::Request { what })
        }
        _ => {
            let mut spec = undisturbed(|| host(effort, cpus, progress))?;
            if let Some(percent) = busy {
                spec.about += &format!("; measured while {percent:.0} % busy with other work");
            }
            Ok(spec)
        }
    }
}

/// How often a disturbed measurement is repeated before it is an error.
const REPEATS: usize = 4;

/// Measures until the machine's file is one that can be read. A thread that lost its CPU during a
/// measurement makes a price absurd.
fn undisturbed(mut measure: impl FnMut() -> Result<Spec, LabError>) -> Result<Spec, LabError> {
    let mut repeats = 0;
    loop {
        let spec = measure()?;
        match Spec::parse(&spec.name, &spec.to_toml()) {
            Ok(_) => return Ok(spec),
            Err(_) if repeats < REPEATS => repeats += 1,
            Err(error) => {
                let advice =
                    "other programs disturbed the measurement; measure again when they are idle";
                return Err(LabError::Request { what: format!("{error}; {advice}") });
            }
        }
    }
}

fn host(effort: Effort, cpus: [usize; 2], progress: &dyn Progress) -> Result<Spec, LabError> {
    let mut spec = find(TEMPLATE)?;
    spec.name = "this host".to_string();
    spec.about = measure::machine();
    spec = topology(spec);
    for (key, value, how) in micro::prices(effort, cpus[0], progress)? {
        // A price must be greater than zero, because a machine's file with a zero is rejected.
        let value = Spread { median: value.median.max(0.001), ..value };
        spec = spec.with_parameter(key, parameter(value, how));
    }
    // The price of a line is that of an atomic operation, of which a load takes a share.
    let share = spec.value("line.load_share");
    let load = transfer(cpus, effort.pick(500, 20_000, 20_000))?;
    let [median, low, high] = [load.median, load.low, load.high].map(|ns| ns / share);
    let line = Spread { median, low, high, ..load };
    // Two CPUs show one distance, so it is taken for all three.
    Ok(["line.node_ns", "line.near_ns", "line.far_ns"].into_iter().fold(spec, |spec, key| {
        let how = "a load of a line that another CPU has written, by line.load_share";
        spec.with_parameter(key, parameter(line, how))
    }))
}

fn parameter(value: Spread, how: &str) -> Parameter {
    let [median, low, high] = [value.median, value.low, value.high].map(figure);
    let source = format!("measured: {how}; median {median}, {low} to {high}");
    let value = (value.median * 1e3).round() / 1e3;
    Parameter { value, origin: Origin::Source(source) }
}

/// Sets the numbers of sockets and cores as the kernel reports them. If it reports none, the host
/// becomes one socket with all CPUs as cores.
fn topology(spec: Spec) -> Spec {
    let cpus = measure::cpus();
    let named = |cpu: &usize, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
        fs::read_to_string(path).ok().map(|text| text.trim().to_string())
    };
    let of = |cpu: &usize| Some((named(cpu, "physical_package_id")?, named(cpu, "core_id")?));
    let cores: BTreeSet<(String, String)> = cpus.iter().filter_map(of).collect();
    let packages: BTreeSet<&String> = cores.iter().map(|(package, _)| package).collect();
    let sockets = packages.len().max(1);
    let threads = (cpus.len() / cores.len().max(1)).max(1);
    let counts = [
        ("topology.sockets", sockets),
        ("topology.cores_per_socket", (cpus.len() / threads / sockets).max(1)),
        ("topology.threads_per_core", threads),
        ("topology.sockets_per_group", sockets),
    ];
    let rates = (2..=threads).map(|busy| {
        let because = "not measured: what busy siblings get together".to_string();
        let (low, high) = (1.0, busy as f64);
        let origin = Origin::Assumed { low, high, because };
        (format!("smt.rate_{busy}"), Parameter { value: 1.25_f64.min(high), origin })
    });
    let counted = counts.into_iter().map(|(key, count)| {
        let origin = Origin::Source("as the kernel says".to_string());
        (key.to_string(), Parameter { value: count as f64, origin })
    });
    counted.chain(rates).fold(spec, |spec, (key, parameter)| spec.with_parameter(&key, parameter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_with_a_price_that_no_machine_has_is_repeated() {
        let good = find(TEMPLATE).unwrap();
        let slow = parameter(Spread::of([0.04]), "with a CPU that is never ours");
        let bad = good.clone().with_parameter("cpu.ghz", slow);
        // As many disturbed measurements as are repeated, and one more.
        for disturbed in [REPEATS, REPEATS + 1] {
            let mut measured = 0;
            let spec = undisturbed(|| {
                measured += 1;
                Ok(if measured <= disturbed { bad.clone() } else { good.clone() })
            });
            assert_eq!(measured, REPEATS + 1);
            match spec {
                Ok(spec) => assert!(disturbed == REPEATS && spec.to_toml() == good.to_toml()),
                Err(error) => {
                    let error = error.to_string();
                    assert!(disturbed > REPEATS && error.contains("measure again"), "{error}");
                    assert!(error.contains("cpu.ghz"), "{error}");
                }
            }
        }
    }
}
