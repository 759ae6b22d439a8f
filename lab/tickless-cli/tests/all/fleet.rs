//! `tickless fleet`: a row for each trace, and the whole.

use crate::run::{file, fits, prints, tickless};

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
    assert_eq!(nginx.split(',').nth(7).unwrap().split('.').next(), Some("40"), "{nginx}");
    assert!(csv.lines().last().unwrap().contains("fleet-bad.txt"), "{csv}");
    let _ = tickless("fleet fleet-bad.txt").exits(1, &[]);
}
