//! `tickless sweep`: results survive every end of a run, and a table is complete or refused.

use crate::run::{PROGRAM, stderr, stdout};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own, gone at the end.
struct Place {
    path: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Place {
    fn new(name: &str, campaign: &str) -> Place {
        let path =
            std::env::temp_dir().join(format!("tickless-sweep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("campaign.toml"), campaign).unwrap();
        Place { path }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(&self.path).args(["sweep"]).args(args).stdin(Stdio::null());
        for name in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its output.
    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// Runs a command that must fail with this status. Returns its messages.
    fn bad(&self, status: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
        stderr(&output)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path.join(file)).unwrap()
    }

    fn parts(&self, folder: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path.join(folder).join("parts")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

const SMALL: &str = "
    [simulate]
    studies = ['rearm']
    machines = ['x5675-2s']
    policies = ['eager', 'lazy']
    hz = [250, 1000]
    seeds = '0-4'
    rounds = 20
    exclude = [{ policy = 'lazy', hz = 250 }]";

/// Each cell of the product is performed once, and no excluded one.
#[test]
fn a_cell_with_a_result_is_not_performed_again() {
    let place = Place::new("again", SMALL);
    let sweep = ["campaign.toml", "--out", "out"];
    assert!(place.good(&sweep).starts_with("15 cells performed; 0 were there"));
    assert!(place.good(&sweep).starts_with("0 cells performed; 15 were there"));
    // A campaign that has grown performs what it has grown by.
    fs::write(place.path.join("campaign.toml"), SMALL.replace("0-4", "0-5")).unwrap();
    assert!(place.good(&sweep).starts_with("3 cells performed; 15 were there"));
    let status = place.good(&["status", "out", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((status["cells"].as_u64(), status["missing"].as_u64()), (Some(18), Some(0)));
    place.good(&["merge", "out", "-o", "all.csv"]);
    let csv = place.read("all.csv");
    assert!(csv.starts_with("key,version,kind,study,machine,machine_hash,trace,cpus,policy,"));
    assert_eq!(csv.lines().count(), 1 + 18 * 5);
    assert!(!csv.contains(",lazy,,250,"));
}

/// Byte for byte, in any folders. Each cell is in one shard.
#[test]
fn shards_make_the_table_of_one_process() {
    let place = Place::new("shards", SMALL);
    place.good(&["campaign.toml", "--out", "whole", "--threads", "1"]);
    place.good(&["merge", "whole", "-o", "whole.csv"]);
    place.good(&["campaign.toml", "--out", "one", "--shard", "0/3"]);
    place.good(&["campaign.toml", "--out", "one", "--shard", "1/3"]);
    let missing = place.bad(1, &["merge", "one", "-o", "early.csv"]);
    assert!(missing.contains("cells are missing") && !place.path.join("early.csv").exists());
    let mut array = place.command(&["campaign.toml", "--out", "two"]);
    array.env("SLURM_ARRAY_TASK_ID", "3").env("SLURM_ARRAY_TASK_COUNT", "3");
    assert!(array.env("SLURM_ARRAY_TASK_MIN", "1").output().unwrap().status.success());
    let mut indexed = place.command(&["campaign.toml", "--out", "two", "--shard", "3"]);
    let again = indexed.env("JOB_COMPLETION_INDEX", "2").output().unwrap();
    assert!(stdout(&again).starts_with("0 cells performed"), "{}", stderr(&again));
    place.good(&["merge", "one", "two", "-o", "split.csv"]);
    assert_eq!(place.read("split.csv"), place.read("whole.csv"));
}

/// A program without it names the way to get it at once, and leaves no file.
#[test]
fn parquet_needs_the_feature() {
    let place = Place::new("parquet", SMALL);
    place.good(&["campaign.toml", "--out", "out"]);
    let merge = ["merge", "out", "-o", "all.parquet"];
    let file = place.path.join("all.parquet");
    if cfg!(feature = "parquet") {
        place.good(&merge);
        assert_eq!(&fs::read(file).unwrap()[..4], b"PAR1");
    } else {
        let refused = place.bad(1, &merge);
        assert!(refused.contains("--features parquet") && refused.contains(".csv"), "{refused}");
        assert!(!file.exists());
    }
}

/// Results of another campaign and of another version are refused too.
#[test]
fn double_cells_and_foreign_results_are_not_merged() {
    let place = Place::new("refused", SMALL);
    place.good(&["campaign.toml", "--out", "out"]);
    place.good(&["campaign.toml", "--out", "copy"]);
    let double = place.bad(1, &["merge", "out", "copy", "-o", "all.csv"]);
    assert!(double.contains("copy/parts/") && double.contains("out/parts/"), "{double}");
    fs::write(place.path.join("other.toml"), SMALL.replace("0-4", "7")).unwrap();
    place.good(&["other.toml", "--out", "other"]);
    let differ = place.bad(1, &["merge", "out", "other", "-o", "all.csv"]);
    assert!(differ.contains("different campaigns"), "{differ}");
    let part = place.parts("out").pop().unwrap();
    let old = fs::read_to_string(&part).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    fs::write(&part, old.replacen(version, "0.0.1", 1)).unwrap();
    let version = place.bad(1, &["merge", "out", "-o", "all.csv"]);
    assert!(version.contains("version 0.0.1") && version.contains("remove it"), "{version}");
    fs::write(&part, old.replacen("\"figures\"", "figures", 1)).unwrap();
    let damaged = place.bad(1, &["status", "out"]);
    assert!(damaged.contains(".jsonl:2:"), "{damaged}");
    // A figure with another last digit is JSON all the same; so is a part without its last cell.
    let digit =
        old.rfind("\"checksum\"").and_then(|end| old[..end].rfind(|c: char| c.is_ascii_digit()));
    let digit = digit.expect("a part ends with figures and a checksum");
    let other = if &old[digit..=digit] == "1" { "2" } else { "1" };
    let changed = format!("{}{other}{}", &old[..digit], &old[digit + 1..]);
    let lines: Vec<&str> = old.lines().collect();
    let cut = lines[..lines.len() - 2].join("\n") + "\n" + lines[lines.len() - 1];
    for wrong in [changed, cut, lines[..lines.len() - 1].join("\n")] {
        fs::write(&part, wrong).unwrap();
        for command in [&["merge", "out", "-o", "all.csv"][..], &["campaign.toml", "--out", "out"]]
        {
            let refused = place.bad(1, command);
            assert!(refused.contains("checksum"), "{refused}");
        }
    }
    assert!(!place.path.join("all.csv").exists());
    assert!(place.bad(1, &["merge", "other", "-o", "all.xls"]).contains(".parquet or .csv"));
    assert!(place.bad(1, &["status", "nowhere"]).contains("campaign.json"));
}

#[test]
fn a_killed_campaign_continues_to_the_same_table() {
    // Three times as long as until the first part is written.
    let long = SMALL.replace("0-4", "0-19").replace("rounds = 20", "rounds = 6000");
    let place = Place::new("killed", &long);
    let sweep = ["campaign.toml", "--out", "out", "--threads", "1"];
    let mut running = place.command(&sweep).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while place.parts("out").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no part after a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Another process is refused until then.
    let locked = place.run(&sweep);
    running.kill().unwrap();
    let was_running = running.wait().unwrap().code().is_none();
    assert!(was_running, "it was through before it could be killed; make the campaign longer");
    assert!(stderr(&locked).contains("another process"), "{}", stderr(&locked));
    let status = place.good(&["status", "out"]);
    assert!(!status.contains("missing      0") && status.contains("0 processes"), "{status}");
    let rest = place.good(&["campaign.toml", "--out", "out"]);
    assert!(!rest.contains("; 0 were there before") && !rest.starts_with("0 "), "{rest}");
    place.good(&["merge", "out", "-o", "out.csv"]);
    place.good(&["campaign.toml", "--out", "whole"]);
    place.good(&["merge", "whole", "-o", "whole.csv"]);
    assert_eq!(place.read("out.csv"), place.read("whole.csv"));
    let left: Vec<_> = fs::read_dir(place.path.join("out")).unwrap().collect();
    assert_eq!(left.len(), 3, "campaign.json, locks and parts: {left:?}");
}

#[test]
fn an_interrupt_writes_the_results_so_far() {
    let long = SMALL.replace("0-4", "0-999").replace("rounds = 20", "rounds = 2000");
    let place = Place::new("interrupted", &long);
    let mut command = place.command(&["campaign.toml", "--out", "out"]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while place.parts("out").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no part after a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let said = stdout(&output);
    let performed: u64 = said.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    let status = place.good(&["status", "out", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["done"].as_u64(), Some(performed), "{said}");
}

/// Method: a trace that is a pipe into which nothing is written.
#[test]
fn a_blocked_sweep_ends_on_a_signal() {
    let place = Place::new("blocked", "[replay]\ntraces = ['pipe']");
    assert!(Command::new("mkfifo").arg(place.path.join("pipe")).status().unwrap().success());
    // Holds the pipe open, so that reading it blocks.
    let _writer = fs::File::options().read(true).write(true).open(place.path.join("pipe")).unwrap();
    let mut command = place.command(&["campaign.toml", "--out", "out"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(running.try_wait().unwrap().is_none(), "it is blocked");
    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let begun = Instant::now();
    while running.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            running.kill().unwrap();
            panic!("it outlives the signal");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A campaign, a machine or a result: each is refused in bounded memory.
#[test]
fn files_without_an_end_are_refused() {
    let place = Place::new("endless", &SMALL.replace("x5675-2s", "/dev/zero"));
    for campaign in ["/dev/zero", "campaign.toml"] {
        let refused = place.bad(2, &[campaign, "--out", "out"]);
        assert!(refused.contains("longer than 64 MiB"), "{refused}");
    }
}

/// Results that were written before remain, and are used.
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let place = Place::new("full", SMALL);
    place.good(&["campaign.toml", "--out", "out", "--shard", "0/2"]);
    // No file may be longer than 1024 bytes: the plan fits, a part does not.
    let script = format!(
        "trap '' XFSZ; ulimit -f 2; exec {PROGRAM} sweep campaign.toml --out out --shard 1/2"
    );
    let mut shell = Command::new("bash");
    let output = shell.current_dir(&place.path).args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("out/parts/") && said.contains("what was done before stays"), "{said}");
    assert_eq!(place.parts("out").len(), 1);
    let rest = place.good(&["campaign.toml", "--out", "out"]);
    assert!(rest.starts_with("8 cells performed; 7 were there"), "{rest}");
}

/// It is performed again only with `--retry`.
#[test]
fn a_failed_cell_is_a_row_with_its_error() {
    let campaign = "[replay]\ntraces = ['*.txt.gz', 'damaged.txt']\npolicies = ['lazy']";
    let place = Place::new("failing", campaign);
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    for name in ["idle", "pipe-one-cpu"] {
        let name = format!("{name}.txt.gz");
        fs::copy(traces.join(&name), place.path.join(&name)).unwrap();
    }
    fs::write(place.path.join("damaged.txt"), "nothing of a trace\n").unwrap();
    let sweep = ["campaign.toml", "--out", "out", "--shard", "1/2"];
    place.good(&sweep);
    // It vanishes between two runs, and is a cell all the same.
    fs::remove_file(place.path.join("damaged.txt")).unwrap();
    fs::remove_file(place.path.join("pipe-one-cpu.txt.gz")).unwrap();
    place.good(&["campaign.toml", "--out", "out"]);
    place.good(&["merge", "out", "-o", "all.csv"]);
    let csv = place.read("all.csv");
    let errors = || csv.lines().filter(|line| line.contains("txt") && !line.ends_with(','));
    assert_eq!(errors().count(), 2, "{csv}");
    assert!(errors().any(|line| line.contains("pipe-one-cpu.txt.gz: cannot be opened")), "{csv}");
    assert!(csv.contains("idle.txt.gz,,lazy,") && csv.contains(",,recorded,"));
    let name = "pipe-one-cpu.txt.gz";
    fs::copy(traces.join(name), place.path.join(name)).unwrap();
    assert!(place.good(&["campaign.toml", "--out", "out"]).starts_with("0 cells"));
    let again = place.good(&["campaign.toml", "--out", "out", "--retry"]);
    assert!(again.starts_with("2 cells performed, 1 of which failed; 1 were there"), "{again}");
    place.good(&["merge", "out", "-o", "all.csv"]);
    assert!(!place.read("all.csv").contains("pipe-one-cpu.txt.gz: cannot"));
}

/// No folder is created.
#[test]
fn a_wrong_campaign_is_refused_with_its_line() {
    let place = Place::new("wrong", SMALL);
    let refused = |campaign: &str, wanted: &[&str]| {
        fs::write(place.path.join("wrong.toml"), campaign).unwrap();
        let said = place.bad(2, &["wrong.toml", "--out", "out"]);
        for wanted in wanted {
            assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
        }
        assert!(!place.path.join("out").exists());
    };
    refused(&SMALL.replace("hz = [", "herz = ["), &["wrong.toml:6", "unknown field `herz`", "hz"]);
    refused(&SMALL.replace("'0-4'", "'4-0'"), &["wrong.toml:7", "goes down"]);
    refused("[simulate", &["wrong.toml:1"]);
    refused("name = 'nothing'", &["there are no cells", "[simulate]"]);
    refused(&SMALL.replace("['eager', 'lazy']", "[]"), &["wrong.toml:5", "the list is empty"]);
    refused(
        &SMALL.replace("'lazy', hz = 250", "'lazy' }, { policy = 'eager'"),
        &["exclude leaves"],
    );
    refused("[replay]\ntraces = ['*.txt']", &["replay.traces matches no file"]);
    refused(&SMALL.replace("['rearm']", "['rearme']"), &["rearme", "`rearm`, `clock`"]);
    refused(&SMALL.replace("rounds = 20", "rounds = 0"), &["wrong.toml:", "nonzero"]);
    refused(&SMALL.replace("[250, 1000]", "[0]"), &["simulate.hz", "from 1 to"]);
    refused(&SMALL.replace("x5675-2s", "x5675"), &["there is no machine x5675"]);
    fs::write(place.path.join("m.toml"), "name = 'm'\n[line]\nhit = 3\n").unwrap();
    refused(&SMALL.replace("x5675-2s", "m.toml"), &["m.toml:3", "line.hit"]);
    refused(&SMALL.replace("'0-4'", "'0-1000000000'"), &["4,000,000,004 cells", "--yes"]);
    let nothing = place.bad(2, &["nothing.toml", "--out", "out"]);
    assert!(nothing.contains("nothing.toml: cannot be read"), "{nothing}");
    assert!(place.bad(2, &["campaign.toml", "--out", "out", "--shard", "3/3"]).contains("shard 3"));
}

/// It has thousands of millions of cells, and needs neither time nor memory for them.
#[test]
fn a_very_large_campaign_begins_with_yes() {
    let large = SMALL.replace("'0-4'", "'0-1000000000'").replace("rounds = 20", "rounds = 2000");
    let place = Place::new("large", &large);
    let mut command = place.command(&["campaign.toml", "--out", "out", "--yes", "--shard"]);
    command.arg("5/1000000000");

    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.starts_with("3 cells performed") || said.starts_with("4 cells"), "{said}");
}

/// A lock is that of a shard. Shards of one count have no common cell; others may.
#[test]
fn two_runs_never_have_a_cell_in_common() {
    let place = Place::new("locked", SMALL);
    place.good(&["campaign.toml", "--out", "out", "--shard", "0/2"]);
    let lock = File::open(place.path.join("out/locks/0-of-2")).unwrap();
    lock.lock().unwrap();
    let locked = place.bad(1, &["campaign.toml", "--out", "out", "--shard", "0/2"]);
    assert!(locked.contains("locks/0-of-2: another process"), "{locked}");
    assert!(place.bad(1, &["campaign.toml", "--out", "out"]).contains("another process"));
    place.good(&["campaign.toml", "--out", "out", "--shard", "1/2"]);
    fs::write(place.path.join("campaign.toml"), SMALL.replace("0-4", "0-5")).unwrap();
    let other = place.bad(1, &["campaign.toml", "--out", "out", "--shard", "1/2"]);
    assert!(other.contains("another campaign"), "{other}");
    assert!(place.good(&["status", "out"]).contains("1 process works on it"));
    drop(lock);
    assert!(place.good(&["campaign.toml", "--out", "out"]).starts_with("3 cells performed"));
}

/// Others are made.
#[test]
fn a_wrong_projection_is_refused_with_the_line_of_its_machine() {
    let campaign = "[project]\ntraces = ['idle.txt.gz']\nmachines = ['host']\ncpus = [2, 4]\n\
                    policies = ['lazy']\nclocks = ['tsc', 'combined']";
    let place = Place::new("project", campaign);
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/idle.txt.gz");
    fs::copy(traces, place.path.join("idle.txt.gz")).unwrap();
    assert!(place.good(&["campaign.toml", "--out", "out"]).starts_with("4 cells performed;"));
    place.good(&["merge", "out", "-o", "all.csv"]);
    let csv = place.read("all.csv");
    assert!(
        csv.contains("idle.txt.gz,4,lazy,combined,,0,device_writes,writes,predicted,"),
        "{csv}"
    );
    fs::write(place.path.join("m.toml"), "name = 'm'\n[line]\nhit = 3\n").unwrap();
    for (args, said) in [
        (["--machine", "nothing"], "there is no machine nothing"),
        (["--machine", "m.toml"], "m.toml:3: line.hit"),
        (["--machine=host", "--cpus=0"], "0 CPUs; ask for 1 to 4096"),
        (["--machine=host", "--cpus=4-2"], "goes down"),
        (["--machine=host", "--seconds=0"], "--seconds 0 is no time"),
        (["--machine=host", "--clock=sundial"], "sundial"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.current_dir(&place.path).args(["project", "idle.txt.gz"]).args(args);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}
