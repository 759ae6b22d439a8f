//! Prints what `tickless study --sim` does not have: `cargo run --release --example studies -- fit`
//! fits the numbers of the machines' files again; `guest` prints a prediction without a published
//! counterpart (`docs/dev/predictions.md`).

// An example prints, and ends with an error or a panic.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use tickless_lab::studies::{Cell, cancel, clock, phase, rearm, schedule};
use tickless_machine::machines;
use tickless_machine::size::sized;
use tickless_machine::spec::Spec;
use tickless_trace::replay::ReplayPolicy;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn spec(name: &str) -> Result<Spec> {
    Ok(machines::named(name).ok_or("no such machine")??)
}

/// Prints each number that the fits of the studies change.
fn fit() -> Result<()> {
    let [itanium, small_itanium] = [spec("itanium2-32p")?, spec("itanium2-4p")?];
    let [haswell, ivybridge] = [spec("haswell-ex-4s")?, spec("ivybridge-ex-16s")?];
    let fitted = [
        ("itanium2-32p", cancel::model::refit(&itanium, &small_itanium)?),
        ("itanium2-4p", cancel::model::refit(&small_itanium, &small_itanium)?),
        ("haswell-ex-4s", clock::model::refit(&haswell, &haswell)?),
        ("ivybridge-ex-16s", clock::model::refit(&ivybridge, &haswell)?),
        ("x5675-2s", rearm::model::refit(&spec("x5675-2s")?)?),
        ("power10-core", phase::model::refit(&spec("power10-core")?)?),
        ("power10-later", phase::model::refit_second_source(&spec("power10-later")?)?),
    ];
    for (machine, fitted) in fitted {
        let was = spec(machine)?;
        for (key, parameter) in fitted.parameters() {
            if parameter.value != was.value(key) {
                println!("{machine} {key} {:.5} was {}", parameter.value, was.value(key));
            }
        }
    }
    Ok(())
}

/// The prediction for guests of an emulator with one CPU. The prices of a read or a write, a wakeup
/// and a switch are those of the trial model in `docs/dev/predictions.md`.
fn guests(like: &Spec) -> Result<Vec<Cell>> {
    let guest = sized(like, 1)
        .spec
        .with("os.syscall_ns", 1_500.0)
        .with("os.wake_ns", 1_000.0)
        .with("os.switch_ns", 2_000.0);
    let mut cells = Vec::new();
    for groups in [1, 2, 4] {
        for policy in [ReplayPolicy::RestartAware, ReplayPolicy::Linux71] {
            let load = schedule::Load { groups, ..schedule::Load::new(&guest, 250, 1_000) };
            let name = format!("1cpu.{groups}groups.{}", policy.name());
            cells.extend(schedule::cells(&name, &guest, load, policy)?);
        }
    }
    Ok(cells)
}

fn main() -> Result<()> {
    let cells = match std::env::args().nth(1).as_deref() {
        Some("fit") => return fit(),
        Some("guest") => guests(&spec("haswell-ex-4s")?)?,
        _ => return Err("usage: studies fit|guest".into()),
    };
    for Cell { id, value, unit, .. } in cells {
        println!("{id:44} {value:>14.3} {unit}");
    }
    Ok(())
}
