//! `tickless sweep` ends early as users expect; its transcript shows the rest.

use crate::run::{Ended, program, signal};
use std::io::{BufRead, BufReader, Read};

const LINE: &str = "sweep schedule --machine x5675-2s --policy lazy --hz 250,1000 --length 5 \
                    --seeds 0-";

/// Goal: what an interrupted sweep printed is the beginning of the whole table, in whole cells.
#[test]
fn an_interrupted_sweep_has_the_first_rows() {
    let mut running = program(&format!("{LINE}999999")).spawn().unwrap();
    let mut out = BufReader::new(running.stdout.take().unwrap());
    let mut text = String::new();
    while text.lines().count() < 20 {
        assert_ne!(out.read_line(&mut text).unwrap(), 0, "{text}");
    }
    signal(running.id(), "-INT");
    out.read_to_string(&mut text).unwrap();
    let whole = Ended::of(&mut program(&format!("{LINE}999 --threads 1"))).exits(0, &[]).out;
    let rows_of = |text: &str| text.lines().count() - 1;
    let (rows, of_cell) = (rows_of(&text), rows_of(&whole) / 2_000);
    let err = Ended::from(running.wait_with_output().unwrap()).exits(130, &["interrupted: "]).err;
    assert!(err.contains(&format!("{} of 2000000 combinations", rows / of_cell)), "{rows}: {err}");
    assert!(rows.is_multiple_of(of_cell) && whole.starts_with(&text), "{rows}");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let _ = Ended::of(program(&format!("{LINE}9")).stdout(full)).exits(1, &["cannot write"]);
}
