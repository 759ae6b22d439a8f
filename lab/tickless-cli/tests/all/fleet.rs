//! `tickless fleet`: a row for each trace, and the whole.

use crate::run::{file, fits, prints, tickless};
use crate::support::{sample_text, twice};

#[test]
fn a_summary_names_the_machine_that_differs() {
    file("fleet-bad.txt", "nothing of a trace\n");
    let fleet = "fleet traces/idle.txt.gz traces/nginx.txt.gz traces/pipe-one-cpu.txt.gz \
                 fleet-bad.txt";
    let text = prints(fleet);
    fits(text.lines());
    assert!(text.starts_with("4 traces, of which 1 cannot be used"), "{text}");
    assert!(
        text.contains("fleet-bad.txt") && text.contains("Machines that differ most:"),
        "{text}"
    );
    let csv = prints(&format!("{fleet} --format csv"));
    assert_eq!(csv.lines().count(), 5);
    let nginx = csv.lines().find(|line| line.contains("nginx")).unwrap();
    let columns: Vec<&str> = nginx.split(',').collect();
    // Device writes a second as recorded, and under lazy: 40 % fewer.
    assert!(columns[3].starts_with("482.") && columns[7].starts_with("289."), "{nginx}");
    assert!(csv.lines().last().unwrap().contains("fleet-bad.txt"), "{csv}");
    let _ = tickless("fleet fleet-bad.txt").exits(1, &[]);
}

/// Damaged and too short traces are rows of their own, and change no quantile.
#[test]
fn damaged_traces_are_left_out() {
    let text = sample_text("idle");
    file("fleet-twice.txt", twice(&text));
    let short: Vec<&str> = text.lines().take(30).collect();
    file("fleet-short.txt", &(short.join("\n") + "\n"));
    let quantiles = |text: &str| text.split_once("\nEach CPU's second").unwrap().1.to_string();
    let fleet = "fleet traces/idle.txt.gz";
    let all = prints(&format!("{fleet} fleet-twice.txt fleet-short.txt"));
    assert!(all.starts_with("3 traces, of which 2 cannot be used"), "{all}");
    assert!(all.contains("damaged: fleet-twice.txt") && all.contains("too short for"), "{all}");
    assert_eq!(quantiles(&all), quantiles(&prints(fleet)));
}
