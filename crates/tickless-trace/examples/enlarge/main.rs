//! Makes a large `trace.dat` of a small one, to measure the cost of reading (`ci/large-trace.sh`).
//!
//! ```sh
//! cargo run --release -p tickless-trace --example enlarge -- small.dat 100M large.dat
//! ```
//!
//! It repeats the pages of all CPUs, each time later by the length of the trace, until they have
//! that many bytes before compression. A compressed file stays compressed.
#![allow(clippy::print_stderr, reason = "a program to be run by hand")]

mod dat;

use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, bytes, to] = args.as_slice() else {
        return Err("usage: enlarge SMALL.dat BYTES LARGE.dat, such as 100M".into());
    };
    let (number, unit) = match bytes.strip_suffix('M') {
        Some(number) => (number, 1 << 20),
        None => (bytes.as_str(), 1),
    };
    let wanted = number.parse::<usize>()?.saturating_mul(unit);
    let small =
        dat::Dat::parse(&fs::read(from)?).ok_or("not a whole trace.dat of version 6 or 7")?;
    let times = wanted.div_ceil(small.page_bytes().max(1)).max(1);
    fs::write(to, small.repeated(times))?;
    eprintln!("{to}: the pages of {from} {times} times");
    Ok(())
}
