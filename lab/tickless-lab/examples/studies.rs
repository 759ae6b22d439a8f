//! Prints what `tickless study --sim` does not have: `cargo run --release --example studies -- fit`
//! fits the numbers of the machines' files again; `schedule`, `slice` and `guest` print the
//! predictions without a published counterpart (`docs/dev/predictions.md`).

// An example prints, and ends with an error or a panic.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use tickless_lab::studies::{Cell, cancel, clock, phase, rearm, schedule};
use tickless_machine::machines;
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

/// Returns the cells of the first prediction: two machines, each with two ticks.
fn schedules() -> Result<Vec<Cell>> {
    let like = spec("haswell-ex-4s")?;
    let [small, big] = [schedule::machine(&like, 1, 8), schedule::machine(&like, 4, 16)];
    let mut cells = Vec::new();
    for (machine, messages) in [(small, 2_000), (big, 800)] {
        for hz in [1_000, 250] {
            let load = schedule::Load::new(&machine, hz, messages);
            cells.extend(schedule::cells(&machine, load)?);
        }
    }
    Ok(cells)
}

/// The second prediction: slices that the timer or the tick ends, on 112 CPUs, and several numbers
/// of groups on 16 CPUs.
fn slices(like: &Spec) -> Result<Vec<Cell>> {
    let with = |machine: &Spec, hz, groups, messages, slice| {
        let load = schedule::Load::new(machine, hz, messages);
        let load = schedule::Load { groups, has_slice_timer: slice, ..load };
        let cpus = machine.costs().topology.cpus();
        let end = if slice { "timer" } else { "tick" };
        let name = format!("{cpus}cpus.{hz}hz.{groups}groups.{end}");
        schedule::cells_of(&name, machine, load, ReplayPolicy::Linux71)
    };
    let big = schedule::machine(like, 2, 28).with("topology.threads_per_core", 2.0);
    let small = schedule::machine(like, 1, 16);
    let mut cells = Vec::new();
    for hz in [1_000, 250] {
        for groups in [20, 56] {
            for slice in [false, true] {
                cells.extend(with(&big, hz, groups, 4_000, slice)?);
            }
        }
    }
    for hz in [1_000, 250] {
        for groups in [2, 4, 8, 16, 32, 64] {
            cells.extend(with(&small, hz, groups, 12_800 / u32::from(groups), true)?);
        }
    }
    Ok(cells)
}

/// The prediction for guests of an emulator with one CPU. The prices of a read or a write, a wakeup
/// and a switch are those of the trial model in `docs/dev/predictions.md`.
fn guests(like: &Spec) -> Result<Vec<Cell>> {
    let guest = schedule::machine(like, 1, 1)
        .with("topology.threads_per_core", 1.0)
        .with("os.syscall_ns", 1_500.0)
        .with("os.wake_ns", 1_000.0)
        .with("os.switch_ns", 2_000.0);
    let mut cells = Vec::new();
    for groups in [1, 2, 4] {
        for policy in [ReplayPolicy::RestartAware, ReplayPolicy::Linux71] {
            let load = schedule::Load { groups, ..schedule::Load::new(&guest, 250, 1_000) };
            let name = format!("1cpu.{groups}groups.{}", policy.name());
            cells.extend(schedule::cells_of(&name, &guest, load, policy)?);
        }
    }
    Ok(cells)
}

fn main() -> Result<()> {
    let cells = match std::env::args().nth(1).as_deref() {
        Some("fit") => return fit(),
        Some("schedule") => schedules()?,
        Some("slice") => slices(&spec("haswell-ex-4s")?)?,
        Some("guest") => guests(&spec("haswell-ex-4s")?)?,
        _ => return Err("usage: studies fit|schedule|slice|guest".into()),
    };
    for Cell { id, value, unit, .. } in cells {
        println!("{id:44} {value:>14.3} {unit}");
    }
    Ok(())
}
