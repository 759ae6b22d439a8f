//! The `tickless` program.
fn main() {}
