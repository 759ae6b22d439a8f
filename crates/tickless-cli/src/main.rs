//! The `tickless` program; everything it does lives in the library beside it.

#![forbid(unsafe_code)]

fn main() {
    tickless_cli::main();
}
