//! `tickless sweep`: results survive every end of a run, and the table is that of one whole run.

use crate::live::wait_until;
use crate::run::{Ended, PROGRAM, program, signal};
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

    fn copy(&self, trace: &str) {
        let from = format!("{}/../../traces/{trace}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, self.path(trace)).unwrap();
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

    /// The table of a run that nothing ends early.
    #[track_caller]
    fn whole(&self) -> String {
        self.good("campaign.toml -o whole.csv --threads 1");
        self.read("whole.csv")
    }

    /// Starts a run, and waits until it has kept some cells.
    fn begun(&self, line: &str) -> Child {
        let running = self.command(line).spawn().unwrap();
        let kept = || fs::read_to_string(self.path(PARTIAL)).unwrap_or_default();
        wait_until("cells are kept", || kept().lines().count() > 3);
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

const SWEEP: &str = "campaign.toml -o out.csv";
const PARTIAL: &str = "out.csv.partial";

#[test]
fn a_table_has_a_row_for_each_figure_of_each_cell() {
    let place = Place::new(SMALL);
    assert_eq!(place.good(SWEEP), "20 cells performed; 0 were there before\nout.csv\n");
    let csv = place.read("out.csv");
    assert!(csv.starts_with("key,version,kind,study,machine,machine_hash,trace,cpus,policy,"));
    assert_eq!(csv.lines().count(), 1 + 20 * 5);
    assert!(csv == place.whole() && !place.path(PARTIAL).exists());
    place.bad(1, SWEEP, &["out.csv: there is such a file", "name another"]);
    assert_eq!(place.read("out.csv"), csv);
}

#[test]
fn a_killed_campaign_continues_to_the_same_table() {
    // Long enough to be killed while it runs.
    let long = SMALL.replace("0-4", "0-19").replace("rounds = 20", "rounds = 3000");
    let place = Place::new(&long);
    let mut running = place.begun(&format!("{SWEEP} --threads 1"));
    // Another process is refused until then.
    let locked = Ended::of(&mut place.command(SWEEP));
    running.kill().unwrap();
    let was_running = running.wait().unwrap().code().is_none();
    assert!(was_running, "it was through before it could be killed; make the campaign longer");
    let _ = locked.exits(1, &["out.csv.partial: another process"]);
    // A kill or a full disk can end the file in a line.
    let kept = place.read(PARTIAL);
    let kept = &kept[..=kept.rfind('\n').unwrap()];
    let (cells, torn) = (kept.lines().count() - 1, &kept[..kept.len() - 9]);
    place.write(PARTIAL, torn);
    let rest = place.good(SWEEP);
    assert!(rest.contains(&format!("; {cells} were there before")), "{rest}");
    assert_eq!(place.read("out.csv"), place.whole());
    assert!(!place.path(PARTIAL).exists());
}

#[test]
fn damaged_and_foreign_cells_are_refused() {
    let long = SMALL.replace("0-4", "0-999").replace("rounds = 20", "rounds = 500");
    let place = Place::new(&long);
    let running = place.begun(SWEEP);
    signal(running.id(), "-INT");
    let said = Ended::from(running.wait_with_output().unwrap()).exits(130, &[]).out;
    let kept = place.read(PARTIAL);
    let performed = said.split(' ').next().unwrap().replace(',', "");
    assert_eq!(performed.parse(), Ok(kept.lines().count()), "{said}");

    place.write("other.toml", &SMALL.replace("rounds = 20", "rounds = 21"));
    place.bad(1, "other.toml -o out.csv", &["out.csv.partial: it has cells of another campaign"]);
    place.write(PARTIAL, &kept.replacen("\"figures\"", "figures", 1));
    place.bad(1, SWEEP, &["out.csv.partial:1: ", "remove the file"]);
    assert!(!place.path("out.csv").exists());
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
    // No file may be longer than 8192 bytes, which is enough for some of the cells.
    let script = format!("trap '' XFSZ; ulimit -f 8; exec '{PROGRAM}' sweep {SWEEP}");
    let mut shell = Command::new("bash");
    let ended = Ended::of(shell.current_dir(&place.0).args(["-c", &script]));
    let _ = ended.exits(1, &["out.csv.partial: ", "what was done before stays"]);
    let kept = place.read(PARTIAL).lines().count();
    assert!((1..20).contains(&kept), "{kept}");
    assert!(place.good(SWEEP).contains(&format!("; {kept} were there before")));
    assert_eq!(place.read("out.csv"), place.whole());
}

#[test]
fn a_failed_cell_is_a_row_with_its_error() {
    let place = Place::new("[replay]\ntraces = ['*.txt.gz', 'nowhere.txt']\npolicies = ['lazy']");
    place.copy("idle.txt.gz");
    assert!(place.good(SWEEP).starts_with("2 cells performed, 1 of which failed; 0 were"));
    let csv = place.read("out.csv");
    let errors: Vec<&str> = csv.lines().skip(1).filter(|line| !line.ends_with(',')).collect();
    assert!(errors.len() == 1 && errors[0].contains("nowhere.txt: cannot be opened"), "{csv}");
    assert!(csv.contains("idle.txt.gz,,lazy,") && csv.contains(",,recorded,"));
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
        place.bad(2, "wrong.toml -o out.csv", words);
    }
    place.bad(2, "nothing.toml -o out.csv", &["nothing.toml: cannot be read"]);
    place.bad(2, "/dev/zero -o out.csv", &["longer than 64 MiB"]);
    assert!(!place.path(PARTIAL).exists());
}

#[test]
fn a_projection_is_a_cell_for_each_size_and_clock() {
    let campaign = "[project]\ntraces = ['idle.txt.gz']\nmachines = ['host']\ncpus = [2, 4]\n\
                    policies = ['lazy']\nclocks = ['tsc', 'combined']";
    let place = Place::new(campaign);
    place.copy("idle.txt.gz");
    assert!(place.good(SWEEP).starts_with("4 cells performed;"));
    let csv = place.read("out.csv");
    let row = "idle.txt.gz,4,lazy,combined,,0,device_writes,writes,predicted,";
    assert!(csv.contains(row), "{csv}");
}
