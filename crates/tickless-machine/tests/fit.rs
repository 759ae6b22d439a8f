//! Prints the studies' cells. Run by hand: `cargo test --release --test fit -- --ignored --nocapture`.

use tickless_machine::machines;
use tickless_machine::spec::Spec;
use tickless_machine::study::{Cell, cancel};

fn spec(name: &str) -> Spec {
    machines::named(name).unwrap().unwrap()
}

fn show(cells: &[Cell]) {
    for cell in cells {
        println!(
            "{:32} {:>14.3} [{:.3}, {:.3}] {:12} published {:?} {:?} inside {:?}",
            cell.id,
            cell.value,
            cell.low,
            cell.high,
            cell.unit,
            cell.published,
            cell.role,
            cell.inside
        );
    }
}

#[test]
#[ignore = "shows figures"]
fn cancel_cells() {
    let (big, small) = (spec("itanium2-32p"), spec("itanium2-4p"));
    let cells = cancel::cells(&big, &small).unwrap();
    for cell in cells.iter().filter(|cell| cell.role == tickless_machine::study::Role::Calibrated) {
        println!("{} {}", cell.id, cell.value);
    }
    if std::env::var("ALL").is_ok() {
        show(&cells);
    }
    if std::env::var("CURVE").is_ok() {
        for cpus in [2, 4, 8, 16, 32, 64, 128, 256, 512] {
            let began = std::time::Instant::now();
            show(&cancel::curve(&big, &[cpus]).unwrap());
            println!("{:?}", began.elapsed());
        }
    }
}

#[test]
#[ignore = "shows figures"]
fn clock_cells() {
    for name in ["haswell-ex-4s", "ivybridge-ex-16s"] {
        let began = std::time::Instant::now();
        let cells = tickless_machine::study::clock::cells(&spec(name)).unwrap();
        println!("{:?}", began.elapsed());
        if std::env::var("ALL").is_ok() {
            show(&cells);
        } else {
            let calibrated = |cell: &&Cell| cell.role == tickless_machine::study::Role::Calibrated;
            show(&cells.iter().filter(calibrated).cloned().collect::<Vec<_>>());
        }
    }
}

#[test]
#[ignore = "shows figures"]
fn rearm_cells() {
    let began = std::time::Instant::now();
    let cells = tickless_machine::study::rearm::cells(&spec("x5675-2s")).unwrap();
    println!("{:?}", began.elapsed());
    let all = std::env::var("ALL").is_ok();
    let shown = |cell: &&Cell| all || cell.role == tickless_machine::study::Role::Calibrated;
    show(&cells.iter().filter(shown).cloned().collect::<Vec<_>>());
}

#[test]
#[ignore = "shows figures"]
fn rearm_fit() {
    use tickless_core::rearm::Policy;
    use tickless_machine::study::rearm::{self, Others};
    for pipe in [0.0, 100.0, 200.0, 400.0, 800.0] {
        let spec = spec("x5675-2s").with("workload.pipe_ns", pipe);
        println!("{pipe} {}", rearm::run(&spec, Policy::Lazy, Others::None, 2_000).unwrap().us);
    }
}
