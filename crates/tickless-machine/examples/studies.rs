//! Prints the studies' cells: `cargo run --release --example studies -- [NAME] [--curve]
//! [--sensitivity] [--json]`, with NAME one of cancel, clock, rearm, deferred, phase.

// It fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use std::time::Instant;
use tickless_machine::machines;
use tickless_machine::spec::Spec;
use tickless_machine::study::{Cell, cancel, clock, deferred, phase, rearm, sensitivity};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn spec(name: &str) -> Result<Spec> {
    Ok(machines::named(name).ok_or("no such machine")??)
}

fn study(name: &str) -> Result<Vec<Cell>> {
    Ok(match name {
        "cancel" => cancel::cells(&spec("itanium2-32p")?, &spec("itanium2-4p")?)?,
        "clock" => {
            let mut cells = clock::cells(&spec("haswell-ex-4s")?)?;
            cells.extend(clock::cells(&spec("ivybridge-ex-16s")?)?);
            cells
        }
        "rearm" => rearm::cells(&spec("x5675-2s")?)?,
        "deferred" => deferred::cells(&spec("atom-e3825")?)?,
        "phase" => phase::cells(&spec("power10-core")?)?,
        _ => return Err("no such study".into()),
    })
}

fn curve(name: &str) -> Result<Vec<Cell>> {
    let cpus = [2, 4, 8, 16, 32, 64, 128, 256, 512];
    Ok(match name {
        "cancel" => cancel::curve(&spec("itanium2-32p")?, &cpus)?,
        "clock" => clock::curve(&spec("ivybridge-ex-16s")?, &[4, 30, 60, 120, 240, 360, 480])?,
        _ => Vec::new(),
    })
}

/// How the predicted cells of one machine move with its assumed numbers; those that move any
/// cell by a hundredth.
fn sweep(name: &str) -> Result<()> {
    let (machine, cells): (&str, fn(&Spec) -> Vec<Cell>) = match name {
        "cancel" => ("itanium2-32p", |spec| {
            let small = spec.with("topology.sockets", 2.0);
            cancel::cells(spec, &small).unwrap_or_default()
        }),
        "clock" => ("ivybridge-ex-16s", |spec| clock::cells(spec).unwrap_or_default()),
        "rearm" => ("x5675-2s", |spec| rearm::cells(spec).unwrap_or_default()),
        "deferred" => ("atom-e3825", |spec| deferred::cells(spec).unwrap_or_default()),
        _ => ("power10-core", |spec| phase::cells(spec).unwrap_or_default()),
    };
    for one in sensitivity(&spec(machine)?, cells).iter().filter(|one| one.moves() >= 0.01) {
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
        if has("--sensitivity") {
            sweep(name)?;
            continue;
        }
        let cells = if has("--curve") { curve(name)? } else { study(name)? };
        if has("--json") {
            println!("{}", serde_json::to_string_pretty(&cells)?);
            continue;
        }
        for Cell { id, unit, value, published, role, inside, .. } in &cells {
            let published = published.map_or(String::new(), |published| published.to_string());
            let inside = match inside {
                Some(true) => "inside",
                Some(false) => "OUTSIDE",
                None => "",
            };
            let role = format!("{role:?}").to_lowercase();
            println!("{id:44} {value:>14.3} {unit:18} {published:>10} {role:10} {inside}");
        }
        println!("{name}: {:.2?}\n", began.elapsed());
    }
    Ok(())
}
