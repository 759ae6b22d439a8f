//! `tickless sweep`: results survive every end of a run, and a table is complete or refused.

use crate::live::wait_until;
use crate::run::{Ended, PROGRAM, program, signal};
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new(campaign: &str) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        place.write("campaign.toml", campaign);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn copy(&self, traces: &[&str]) {
        for name in traces {
            let trace = format!("{}/../../traces/{name}", env!("CARGO_MANIFEST_DIR"));
            fs::copy(trace, self.path(name)).unwrap();
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = program(&format!("sweep {line}"));
        command.current_dir(&self.0);
        command
    }

    #[track_caller]
    fn good(&self, line: &str) -> String {
        Ended::of(&mut self.command(line)).exits(0, &[]).out
    }

    #[track_caller]
    fn bad(&self, status: i32, line: &str, words: &[&str]) {
        let _ = Ended::of(&mut self.command(line)).exits(status, words);
    }

    #[track_caller]
    fn merged(&self, folders: &str) -> String {
        self.good(&format!("merge {folders} -o merged.csv"));
        self.read("merged.csv")
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.good("status out --format json")).unwrap()
    }

    fn parts(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(folder).join("parts"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    fn begun(&self, line: &str) -> Child {
        let running = self.command(line).spawn().unwrap();
        wait_until("there is a part", || !self.parts("out").is_empty());
        running
    }
}

const SMALL: &str = "
    [simulate]
    studies = ['rearm']
    machines = ['x5675-2s']
    policies = ['eager', 'lazy']
    hz = [250, 1000]
    seeds = '0-4'
    rounds = 20";

const SWEEP: &str = "campaign.toml --out out";

#[test]
fn a_cell_with_a_result_is_not_performed_again() {
    let place = Place::new(SMALL);
    assert!(place.good(SWEEP).starts_with("20 cells performed; 0 were there"));
    assert!(place.good(SWEEP).starts_with("0 cells performed; 20 were there"));
    // A campaign that has grown performs what it has grown by.
    place.write("campaign.toml", &SMALL.replace("0-4", "0-5"));
    assert!(place.good(SWEEP).starts_with("4 cells performed; 20 were there"));
    let status = place.status();
    assert_eq!((&status["cells"], &status["missing"]), (&24.into(), &0.into()));
    let csv = place.merged("out");
    assert!(csv.starts_with("key,version,kind,study,machine,machine_hash,trace,cpus,policy,"));
    assert_eq!(csv.lines().count(), 1 + 24 * 5);
}

#[test]
fn shards_make_the_table_of_one_process() {
    let place = Place::new(SMALL);
    place.good("campaign.toml --out whole --threads 1");
    place.good("campaign.toml --out one --shard 0/3");
    place.good("campaign.toml --out one --shard 1/3");
    place.bad(1, "merge one -o early.csv", &["cells are missing"]);
    assert!(!place.path("early.csv").exists());
    place.good("campaign.toml --out two --shard 2/3");
    assert_eq!(place.merged("one two"), place.merged("whole"));
}

#[test]
fn double_cells_and_foreign_results_are_not_merged() {
    let place = Place::new(SMALL);
    place.good(SWEEP);
    place.good("campaign.toml --out copy");
    place.write("other.toml", &SMALL.replace("0-4", "7"));
    place.good("other.toml --out other");
    for (folders, words) in [
        ("out copy -o all.csv", &["copy/parts/", "out/parts/"][..]),
        ("out other -o all.csv", &["different campaigns"]),
        ("other -o all.xls", &["ends in .csv"]),
        ("nowhere -o all.csv", &["campaign.json"]),
    ] {
        place.bad(1, &format!("merge {folders}"), words);
    }
    let part = place.parts("out").pop().unwrap();
    let old = fs::read_to_string(&part).unwrap();
    let lines: Vec<&str> = old.lines().collect();
    let (before, tail) = old.split_at(old.rfind("\"checksum\"").unwrap());
    let digit = before.rfind(|c: char| c.is_ascii_digit()).unwrap();
    let other = if &old[digit..=digit] == "1" { "2" } else { "1" };
    let changed = format!("{}{other}{}{tail}", &before[..digit], &before[digit + 1..]);
    let whole = lines.len() - 1;
    for (text, words) in [
        (old.replacen(env!("CARGO_PKG_VERSION"), "0.0.1", 1), &["version 0.0.1", "remove it"][..]),
        (old.replacen("\"figures\"", "figures", 1), &[".jsonl:2:"]),
        // A figure with another last digit is JSON all the same; so is a part without its last
        // cell, or without its checksum.
        (changed, &["checksum"]),
        (lines[..whole - 1].join("\n") + "\n" + lines[whole], &["checksum"]),
        (lines[..whole].join("\n"), &["checksum"]),
    ] {
        fs::write(&part, text).unwrap();
        for line in ["merge out -o all.csv", "status out", SWEEP] {
            place.bad(1, line, words);
        }
    }
    assert!(!place.path("all.csv").exists());
}

#[test]
fn a_killed_campaign_continues_to_the_same_table() {
    // Three times as long as until the first part is written.
    let long = SMALL.replace("0-4", "0-19").replace("rounds = 20", "rounds = 6000");
    let place = Place::new(&long);
    let mut running = place.begun("campaign.toml --out out --threads 1");
    // Another process is refused until then.
    let locked = Ended::of(&mut place.command(SWEEP));
    running.kill().unwrap();
    let was_running = running.wait().unwrap().code().is_none();
    assert!(was_running, "it was through before it could be killed; make the campaign longer");
    let _ = locked.exits(1, &["another process"]);
    let status = place.good("status out");
    assert!(!status.contains("missing      0") && status.contains("0 processes"), "{status}");
    let rest = place.good(SWEEP);
    assert!(!rest.contains("; 0 were there before") && !rest.starts_with("0 "), "{rest}");
    place.good("campaign.toml --out whole");
    assert_eq!(place.merged("out"), place.merged("whole"));
    let left: Vec<_> = fs::read_dir(place.path("out")).unwrap().collect();
    assert_eq!(left.len(), 3, "campaign.json, locks and parts: {left:?}");
}

#[test]
fn an_interrupt_writes_the_results_so_far() {
    let long = SMALL.replace("0-4", "0-999").replace("rounds = 20", "rounds = 2000");
    let place = Place::new(&long);
    let running = place.begun(SWEEP);
    signal(running.id(), "-INT");
    let said = Ended::from(running.wait_with_output().unwrap()).exits(130, &[]).out;
    let performed: u64 = said.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert_eq!(place.status()["done"], performed, "{said}");
}

/// Method: a trace that is a pipe into which nothing is written.
#[test]
fn a_blocked_sweep_ends_on_a_signal() {
    let place = Place::new("[replay]\ntraces = ['pipe']");
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Holds the pipe open, so that reading it blocks.
    let _writer = File::options().read(true).write(true).open(pipe).unwrap();
    let mut running = place.command(SWEEP).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert!(running.try_wait().unwrap().is_none(), "it is blocked");
    signal(running.id(), "-TERM");
    wait_until("it ends", || running.try_wait().unwrap().is_some());
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let place = Place::new(SMALL);
    place.good("campaign.toml --out out --shard 0/2");
    // No file may be longer than 1024 bytes: the plan fits, a part does not.
    let script = format!("trap '' XFSZ; ulimit -f 2; exec '{PROGRAM}' sweep {SWEEP} --shard 1/2");
    let mut shell = Command::new("bash");
    let ended = Ended::of(shell.current_dir(&place.0).args(["-c", &script]));
    let _ = ended.exits(1, &["out/parts/", "what was done before stays"]);
    assert_eq!(place.parts("out").len(), 1);
    assert!(place.good(SWEEP).starts_with("10 cells performed; 10 were there"));
}

#[test]
fn a_failed_cell_is_a_row_with_its_error() {
    const NAME: &str = "pipe-one-cpu.txt.gz";
    let campaign = "[replay]\ntraces = ['*.txt.gz', 'damaged.txt']\npolicies = ['lazy']";
    let place = Place::new(campaign);
    place.copy(&["idle.txt.gz", NAME]);
    place.write("damaged.txt", "nothing of a trace\n");
    place.good("campaign.toml --out out --shard 1/2");
    // It vanishes between two runs, and is a cell all the same.
    fs::remove_file(place.path("damaged.txt")).unwrap();
    fs::remove_file(place.path(NAME)).unwrap();
    place.good(SWEEP);
    let csv = place.merged("out");
    let errors = || csv.lines().filter(|line| line.contains("txt") && !line.ends_with(','));
    assert_eq!(errors().count(), 2, "{csv}");
    assert!(errors().any(|line| line.contains("pipe-one-cpu.txt.gz: cannot be opened")), "{csv}");
    assert!(csv.contains("idle.txt.gz,,lazy,") && csv.contains(",,recorded,"));
    place.copy(&[NAME]);
    assert!(place.good(SWEEP).starts_with("0 cells"));
    let again = place.good("campaign.toml --out out --retry");
    assert!(again.starts_with("2 cells performed, 1 of which failed; 1 were there"), "{again}");
    assert!(!place.merged("out").contains("pipe-one-cpu.txt.gz: cannot"));
}

#[test]
fn a_wrong_campaign_is_refused_with_its_line() {
    let place = Place::new(SMALL);
    place.write("m.toml", "name = 'm'\n[line]\nhit = 3\n");
    for (old, new, words) in [
        ("hz = [", "herz = [", &["wrong.toml:6", "unknown field `herz`", "hz"][..]),
        ("'0-4'", "'4-0'", &["wrong.toml:7", "goes down"]),
        (SMALL, "[simulate", &["wrong.toml:1"]),
        (SMALL, "name = 'nothing'", &["there are no cells", "[simulate]"]),
        (SMALL, "[replay]\ntraces = ['*.txt']", &["replay.traces matches no file"]),
        ("['eager', 'lazy']", "[]", &["wrong.toml:5", "the list is empty"]),
        ("['eager', 'lazy']", "['linux-7.1']", &["know none of these policies"]),
        ("['rearm']", "['rearme']", &["rearme", "`rearm`, `clock`"]),
        ("rounds = 20", "rounds = 0", &["wrong.toml:", "nonzero"]),
        ("[250, 1000]", "[0]", &["simulate.hz", "from 1 to"]),
        ("x5675-2s", "x5675", &["there is no machine x5675"]),
        ("x5675-2s", "m.toml", &["m.toml:3", "line.hit"]),
        ("x5675-2s", "/dev/zero", &["longer than 64 MiB"]),
    ] {
        place.write("wrong.toml", &SMALL.replace(old, new));
        place.bad(2, "wrong.toml --out out", words);
    }
    place.bad(2, "nothing.toml --out out", &["nothing.toml: cannot be read"]);
    place.bad(2, "/dev/zero --out out", &["longer than 64 MiB"]);
    place.bad(2, "campaign.toml --out out --shard 3/3", &["there is no shard 3/3"]);
    place.bad(2, "campaign.toml --out out --shard a/8", &["write I/N"]);
    assert!(!place.path("out").exists());
}

/// A lock is that of a shard. Shards of one count have no common cell; others may.
#[test]
fn two_runs_never_have_a_cell_in_common() {
    let place = Place::new(SMALL);
    place.good("campaign.toml --out out --shard 0/2");
    let lock = File::open(place.path("out/locks/0-of-2")).unwrap();
    lock.lock().unwrap();
    let locked = "locks/0-of-2: another process";
    place.bad(1, "campaign.toml --out out --shard 0/2", &[locked]);
    place.bad(1, SWEEP, &["another process"]);
    place.good("campaign.toml --out out --shard 1/2");
    place.write("campaign.toml", &SMALL.replace("0-4", "0-5"));
    place.bad(1, "campaign.toml --out out --shard 1/2", &["another campaign"]);
    assert!(place.good("status out").contains("1 process works on it"));
    drop(lock);
    assert!(place.good(SWEEP).starts_with("4 cells performed"));
}

#[test]
fn a_projection_is_a_cell_for_each_size_and_clock() {
    let campaign = "[project]\ntraces = ['idle.txt.gz']\nmachines = ['host']\ncpus = [2, 4]\n\
                    policies = ['lazy']\nclocks = ['tsc', 'combined']";
    let place = Place::new(campaign);
    place.copy(&["idle.txt.gz"]);
    assert!(place.good(SWEEP).starts_with("4 cells performed;"));
    let csv = place.merged("out");
    let row = "idle.txt.gz,4,lazy,combined,,0,device_writes,writes,predicted,";
    assert!(csv.contains(row), "{csv}");
}
