//! `tickless fleet`: a row for each trace, the whole, and a page.

use crate::run::{PROGRAM, stderr, stdout};
use crate::support::sample_path;
use std::path::PathBuf;
use std::process::{Command, Output};

fn fleet(args: &[&str]) -> (Output, String) {
    let output = Command::new(PROGRAM).arg("fleet").args(args).output().unwrap();
    let text = stdout(&output);
    (output, text)
}

/// The nginx machine differs from the idle ones, and lazy rearming would have saved 40 % of its
/// writes. A damaged trace is a row with its error. The page has the same, drawn. Lines fit.
#[test]
fn a_summary_names_the_machine_that_differs() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let [bad, page] = ["fleet-bad.txt", "fleet.html"].map(|name| place.join(name));
    std::fs::write(&bad, "nothing of a trace\n").unwrap();
    let names = ["idle", "nginx", "pipe-one-cpu"].map(sample_path);
    let mut args: Vec<&str> = names.iter().map(|path| path.to_str().unwrap()).collect();
    args.extend([bad.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    let (output, text) = fleet(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.starts_with("4 traces, of which 1 cannot be used"), "{text}");
    assert!(text.contains("fleet-bad.txt") && text.contains("for the median machine"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains('/')), "{text}");
    let drawn = std::fs::read_to_string(&page).unwrap();
    assert!(drawn.matches("<svg").count() == 3 && drawn.contains("fleet-bad.txt"));
    let (_, csv) = fleet(&[&args[..4], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 5);
    let nginx = csv.lines().find(|line| line.contains("nginx")).unwrap();
    assert_eq!(nginx.split(',').nth(7).unwrap().split('.').next(), Some("40"), "{nginx}");
    assert!(csv.lines().last().unwrap().contains("fleet-bad.txt"), "{csv}");
}

#[test]
fn no_usable_trace_and_an_unwritable_page_exit_1() {
    let (output, _) = fleet(&["/no/such/trace"]);
    assert_eq!(output.status.code(), Some(1));
    let idle = sample_path("idle");
    let (output, _) = fleet(&[idle.to_str().unwrap(), "--html", "/no/such/folder/fleet.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("Name another file"));
}
