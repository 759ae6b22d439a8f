//! Prints the studies' cells: `cargo run --release --example studies -- [NAME] [--curve] [--fit]
//! [--sensitivity] [--json]`, with NAME one of cancel, clock, rearm, deferred, phase, schedule, slice.

// It fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use std::time::Instant;
use tickless_lab::studies::cancel::model as cancel;
use tickless_lab::studies::clock::model as clock;
use tickless_lab::studies::deferred::model as deferred;
use tickless_lab::studies::phase::model as phase;
use tickless_lab::studies::rearm::model as rearm;
use tickless_lab::studies::{Cell, schedule, sensitivity};
use tickless_machine::machines;
use tickless_machine::spec::Spec;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn spec(name: &str) -> Result<Spec> {
    Ok(machines::named(name).ok_or("no such machine")??)
}

fn study(name: &str) -> Result<Vec<Cell>> {
    Ok(match name {
        "cancel" => {
            let mut cells = cancel::cells(&spec("itanium2-32p")?, &spec("itanium2-4p")?)?;
            let later = [spec("itanium2-32w-2005")?, spec("itanium2-4w-2005")?];
            cells.extend(cancel::second_source(&later[0], &later[1])?);
            cells
        }
        "clock" => {
            let mut cells = clock::cells(&spec("haswell-ex-4s")?)?;
            cells.extend(clock::cells(&spec("ivybridge-ex-16s")?)?);
            cells
        }
        "rearm" => rearm::cells(&spec("x5675-2s")?)?,
        "deferred" => deferred::cells(&spec("atom-e3825")?)?,
        "schedule" => {
            let like = spec("haswell-ex-4s")?;
            let mut cells = Vec::new();
            let small = schedule::machine(&like, 1, 8);
            let big = schedule::machine(&like, 4, 16);
            for (machine, messages) in [(small, 2_000), (big, 800)] {
                for hz in [1_000, 250] {
                    let load = schedule::Load::new(&machine, hz, messages);
                    cells.extend(schedule::cells(&machine, load)?);
                }
            }
            cells
        }
        "slice" => slices(&spec("haswell-ex-4s")?)?,
        "phase" => {
            let mut cells = phase::cells(&spec("power10-core")?)?;
            cells.extend(phase::second_source(&spec("power10-later")?)?);
            cells
        }
        _ => return Err("no such study".into()),
    })
}

/// The second prediction: slices that the timer or the tick ends, on 112 CPUs, and several numbers
/// of groups on 16 CPUs.
fn slices(like: &Spec) -> Result<Vec<Cell>> {
    let with = |machine: &Spec, hz, groups, messages, slice| {
        let load = schedule::Load { groups, ..schedule::Load::new(machine, hz, messages) };
        let load = if slice { load } else { schedule::Load { slice: None, ..load } };
        let cpus = machine.costs().topology.cpus();
        let end = if slice { "timer" } else { "tick" };
        let name = format!("{cpus}cpus.{hz}hz.{groups}groups.{end}");
        schedule::cells_of(&name, machine, load, schedule::DEVICE_POLICIES[4])
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

fn curve(name: &str) -> Result<Vec<Cell>> {
    let cpus = [2, 4, 8, 16, 32, 64, 128, 256, 512];
    Ok(match name {
        "cancel" => cancel::curve(&spec("itanium2-32p")?, &cpus)?,
        "clock" => clock::curve(&spec("ivybridge-ex-16s")?, &[4, 30, 60, 120, 240, 360, 480])?,
        _ => Vec::new(),
    })
}

/// What the fitted numbers of the studies' machines have to be. Shows no predicted cell.
fn fits(name: &str) -> Result<()> {
    let refit: Vec<(&str, Spec)> = match name {
        "cancel" => {
            let [big, small] = [spec("itanium2-32p")?, spec("itanium2-4p")?];
            vec![
                ("itanium2-32p", cancel::refit(&big, &small)?),
                ("itanium2-4p", cancel::refit(&small, &small)?),
            ]
        }
        "clock" => {
            let [small, big] = [spec("haswell-ex-4s")?, spec("ivybridge-ex-16s")?];
            vec![
                ("haswell-ex-4s", clock::refit(&small, &small)?),
                ("ivybridge-ex-16s", clock::refit(&big, &small)?),
            ]
        }
        "rearm" => vec![("x5675-2s", rearm::refit(&spec("x5675-2s")?)?)],
        "phase" => vec![
            ("power10-core", phase::refit(&spec("power10-core")?)?),
            ("power10-8c", phase::refit(&spec("power10-8c")?)?),
            ("power10-later", phase::refit_second_source(&spec("power10-later")?)?),
        ],
        _ => Vec::new(),
    };
    for (machine, fitted) in refit {
        let was = spec(machine)?;
        for (key, parameter) in fitted.parameters() {
            if parameter.value != was.value(key) {
                println!("{machine} {key} {:.5} was {}", parameter.value, was.value(key));
            }
        }
    }
    Ok(())
}

/// How the predicted cells of one machine move with its assumed numbers; those that move any
/// cell by a hundredth.
fn sweep(name: &str) -> Result<()> {
    let found = match name {
        "cancel" => {
            let [big, small] = [spec("itanium2-32p")?, spec("itanium2-4p")?];
            sensitivity(
                &big,
                |spec| cancel::refit(spec, &small).unwrap_or_else(|_| spec.clone()),
                |spec| cancel::cells(spec, &small).unwrap_or_default(),
            )
        }
        "clock" => {
            let [small, big] = [spec("haswell-ex-4s")?, spec("ivybridge-ex-16s")?];
            sensitivity(
                &big,
                |spec| clock::refit(spec, &small).unwrap_or_else(|_| spec.clone()),
                |spec| clock::cells(spec).unwrap_or_default(),
            )
        }
        "rearm" => sensitivity(
            &spec("x5675-2s")?,
            |spec| rearm::refit(spec).unwrap_or_else(|_| spec.clone()),
            |spec| rearm::cells(spec).unwrap_or_default(),
        ),
        "deferred" => sensitivity(&spec("atom-e3825")?, Spec::clone, |spec| {
            deferred::cells(spec).unwrap_or_default()
        }),
        _ => sensitivity(
            &spec("power10-core")?,
            |spec| phase::refit(spec).unwrap_or_else(|_| spec.clone()),
            |spec| phase::cells(spec).unwrap_or_default(),
        ),
    };
    for one in found.iter().filter(|one| one.moves() >= 0.01) {
        println!(
            "{:28} {:40} {:>14.3} {:>14.3} {:>14.3} {:>6.1} %",
            one.key,
            one.cell,
            one.at_low,
            one.value,
            one.at_high,
            100.0 * one.moves()
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let named: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|name| !name.starts_with("--")).collect();
    let all = ["cancel", "clock", "rearm", "deferred", "phase"];
    for name in if named.is_empty() { all.to_vec() } else { named } {
        let began = Instant::now();
        if has("--fit") {
            fits(name)?;
            continue;
        }
        if has("--sensitivity") {
            sweep(name)?;
            continue;
        }
        let cells = if has("--curve") { curve(name)? } else { study(name)? };
        if has("--json") {
            println!("{}", serde_json::to_string_pretty(&cells)?);
            continue;
        }
        for cell in &cells {
            let Cell { id, unit, value, published, role, inside, .. } = cell;
            let number = |one: Option<f64>| one.map_or(String::new(), |one| format!("{one:.2}"));
            let inside = match inside {
                Some(true) => "inside",
                Some(false) => "OUTSIDE",
                None => "",
            };
            let role = format!("{role:?}").to_lowercase();
            println!(
                "{id:44} {value:>14.3} {unit:18} {:>12} {role:10} {:>9} {:>9} {:>9} {:>6} {inside}",
                number(*published),
                number(cell.effect),
                number(cell.published_effect),
                number(cell.null_model),
                number(cell.score),
            );
        }
        println!("{name}: {:.2?}\n", began.elapsed());
    }
    Ok(())
}
