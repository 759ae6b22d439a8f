//! The `tickless` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tickless_cli::main()
}
