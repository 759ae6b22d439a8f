//! Fits the numbers of the machines' files again, and prints each that the fits of the studies
//! change: `cargo run --release --example fit`.

// An example prints, and ends with an error or a panic.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::error::Error;
use tickless_lab::studies::{cancel, clock, phase, rearm};
use tickless_machine::machines;
use tickless_machine::spec::Spec;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn spec(name: &str) -> Result<Spec> {
    Ok(machines::named(name).ok_or("no such machine")??)
}

fn main() -> Result<()> {
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
