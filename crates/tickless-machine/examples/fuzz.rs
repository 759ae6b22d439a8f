//! Runs random histories: `cargo run --release --example fuzz -- SEED [COUNT]`.

// Examples panic and print.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use tickless_machine::{fuzz, machines};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let first = arguments.next().transpose()?.unwrap_or(1);
    let count = arguments.next().transpose()?.unwrap_or(1);
    let spec = machines::named(fuzz::MACHINE).ok_or("no such machine")??;
    for seed in first..first + count {
        let history = fuzz::history(&spec, seed)?;
        if count < 20 {
            println!("{seed}: {history}");
        }
    }
    println!("{count} histories");
    Ok(())
}
