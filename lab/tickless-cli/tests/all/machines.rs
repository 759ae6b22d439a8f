//! `tickless machines`, and simulated studies on other machines, run as a user runs them.

use crate::run::{fits, json, path, prints, tickless};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use tickless_lab::measure;
use tickless_machine::machines::FILES;
use tickless_machine::spec::Spec;

#[test]
fn the_list_has_every_machine_and_each_number_has_one_origin() {
    let list = json("machines");
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), FILES.len());
    let (table, csv) = (prints("machines"), prints("machines --format csv"));
    fits(table.lines());
    for (one, (name, text)) in list.iter().zip(FILES) {
        assert_eq!(one["name"], *name);
        assert!(one["cpus"].as_u64().unwrap() >= 2 && one["sourced"].as_u64().unwrap() > 0);
        assert!(table.contains(&format!(" {name} ")) && csv.contains(&format!("\n{name},")));
        let shown = json(&format!("machines {name}"));
        let numbers = shown["numbers"].as_array().unwrap();
        assert_eq!(numbers.len(), Spec::parse(name, text).unwrap().parameters().count());
        for number in numbers {
            let is_assumed = number["origin"] == "assumed";
            assert!(["source", "assumed", "fitted"].contains(&number["origin"].as_str().unwrap()));
            assert_eq!(is_assumed, number["low"].is_number() && number["high"].is_number());
            assert!(!number["from"].as_str().unwrap().is_empty(), "{name}: {number}");
        }
        let csv = prints(&format!("machines {name} --format csv"));
        assert_eq!(csv.lines().count(), 1 + numbers.len());
        assert!(prints(&format!("machines {name}")).contains("line.node_ns"));
    }
}

#[test]
fn a_study_on_another_machine_has_no_published_figures() {
    let line = "study cancel --sim --machine itanium2-4p";
    let cells = |args: &str| json(&format!("{line} {args}"))["cells"].take();
    let elsewhere = cells("");
    for cell in elsewhere.as_array().unwrap() {
        assert_eq!(cell["role"], "predicted");
        assert!(cell["published"].is_null() && cell["band"].is_null(), "{cell}");
        assert!(cell["id"].as_str().unwrap().starts_with("4p."));
    }
    assert_eq!(cells("--seed 0"), elsewhere, "no seed is seed 0");
    assert_eq!(cells("--seed 5"), cells("--seed 5"));
    assert_ne!(cells("--seed 5"), elsewhere);
    let notes = json("study rearm --sim")["notes"].to_string();
    assert!(notes.contains("the seed changes nothing"), "{notes}");
}

#[test]
fn the_file_of_this_host_can_be_read_again() {
    if measure::cpus().len() > 1 {
        // The other tests may keep the CPUs busy.
        let _ = tickless("machines --measure --anyway --quick -o host.toml").exits(0, &[]);
        let text = fs::read_to_string(path("host.toml")).unwrap();
        let spec = Spec::parse("host.toml", &text).unwrap();
        assert_eq!(spec.costs().topology.cpus() as usize, measure::cpus().len());
        assert_eq!(spec.to_toml(), text);
        let shown = json("machines host.toml").to_string();
        assert!(
            shown.contains("measured: ") && !shown.contains("as one measured on a Xeon"),
            "{shown}"
        );
    }
    let alone = std::thread::spawn(move || {
        measure::stay_on(measure::cpus()[0]).unwrap();
        // A program inherits the CPUs of the thread that starts it.
        tickless("machines --measure --quick")
    });
    let _ = alone.join().unwrap().exits(2, &["two CPUs"]);
}

#[test]
fn a_busy_host_is_measured_only_on_request_and_a_report_says_so() {
    let cpus = measure::cpus();
    if cpus.len() == 1 {
        return;
    }
    let over = AtomicBool::new(false);
    let _ = fs::remove_file(path("busy.toml"));
    let line = "machines --measure --quick -o busy.toml";
    std::thread::scope(|scope| {
        for _ in cpus {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let refused = tickless(line);
        let is_written = path("busy.toml").exists();
        let measured = tickless(&format!("{line} --anyway"));
        let report = tickless("report --quick --sim-only --only phase -o report-busy");
        over.store(true, Ordering::Relaxed);
        let _ = report.exits(0, &["off its CPUs", " times as long"]);
        let _ = refused.exits(2, &["busy with other work", "--anyway"]);
        let _ = measured.exits(0, &[]);
        assert!(!is_written);
    });
    let text = fs::read_to_string(path("busy.toml")).unwrap();
    assert!(text.contains("% busy with other work"));
}
