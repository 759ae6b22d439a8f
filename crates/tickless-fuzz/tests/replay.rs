//! Runs the committed corpus and random bytes through every fuzz target, as regression tests.

// Tests panic and print.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use tickless_fuzz::TARGETS;
use tickless_machine::random::Random;

const TEXTS: [&str; 3] = ["trace", "machine", "campaign"];

struct PrintOnPanic<'a>(&'a str);

impl Drop for PrintOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was {}", self.0);
        }
    }
}

fn perform(run: fn(&[u8]), input: &[u8], name: &str) {
    let _print = PrintOnPanic(name);
    run(input);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}

/// Runs a target with its corpus, and with a number of random inputs. `TICKLESS_SEED` selects one
/// random input.
fn replay(name: &str, inputs: u64) {
    let (_, run) = *TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let mut known = files(&folder("fuzz/corpus").join(name));
    assert!(known.len() >= 5, "{name} has a corpus");
    if name == "machine" {
        known.extend(files(&folder("crates/tickless-machine/machines")));
    }
    for file in known {
        perform(run, &fs::read(&file).unwrap(), &file.display().to_string());
    }
    let given = std::env::var("TICKLESS_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in given.map_or(0..inputs, |seed| seed..seed + 1) {
        let mut random = Random::new(seed);
        let length = random.draw() % 600;
        let input: Vec<u8> = (0..length).map(|_| random.draw() as u8).collect();
        perform(run, &input, &format!("TICKLESS_SEED={seed} cargo test -p tickless-fuzz"));
    }
}

#[test]
fn virtual_time() {
    replay("virtual_time", 1_000);
}

#[test]
fn c() {
    replay("c", 500);
}

#[test]
fn text_files() {
    for name in TEXTS {
        replay(name, 50);
    }
}

/// Goal: files that are almost valid are read or refused, without a panic.
/// Method: the corpus's text files with lines missing, doubled, or with another digit.
#[test]
fn almost_valid_files_do_not_panic() {
    for (name, run) in TARGETS.iter().filter(|(name, _)| TEXTS.contains(name)) {
        for file in files(&folder("fuzz/corpus").join(name)) {
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let lines: Vec<&str> = text.lines().take(60).collect();
            for at in 0..lines.len() {
                let mut missing = lines.clone();
                let line = missing.remove(at);
                let mut twice = lines.clone();
                twice.insert(at, line);
                let mut other = lines.clone();
                let digits = ["0", "9", "-", "18446744073709551615", ".", "\""];
                let digit = digits[at % digits.len()];
                let changed = line.replacen(|c: char| c.is_ascii_digit(), digit, 1);
                other[at] = &changed;
                for mistaken in [missing, twice, other] {
                    let again = format!("{}, line {}", file.display(), at + 1);
                    perform(*run, mistaken.join("\n").as_bytes(), &again);
                }
            }
        }
    }
}
