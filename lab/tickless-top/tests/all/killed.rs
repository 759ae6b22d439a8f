//! A killed source leaves nothing in the kernel.

use crate::agreement::TURN;
use crate::skip::skip;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tickless_top::Ebpf;

const COUNT: &str = "TICKLESS_TEST_COUNT";

const COUNTING: &str = "it counts";

fn programs_of(pid: u32) -> BTreeSet<u32> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let number = |line: &str| line.strip_prefix("prog_id:")?.trim().parse().ok();
    texts.flat_map(|text| text.lines().filter_map(number).collect::<Vec<_>>()).collect()
}

fn programs() -> BTreeSet<u32> {
    aya::programs::loaded_programs().filter_map(|info| Some(info.ok()?.id())).collect()
}

/// Returns the files of the file system that keeps eBPF programs.
fn left_in_bpffs() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Goal: a process that is killed while its eBPF programs count leaves none of them, and nothing in
/// bpffs. Method: this test starts itself as that process.
#[test]
fn a_killed_source_leaves_no_programs() {
    const NAME: &str = "a_killed_source_leaves_no_programs";
    let _turn = TURN.lock();
    let source = Ebpf::start();
    if std::env::var_os(COUNT).is_some() {
        println!("{COUNTING}");
        loop {
            thread::park();
        }
    }
    if let Err(error) = source {
        return skip(error);
    }
    let before = left_in_bpffs();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("killed::{NAME}"), "--nocapture"])
        .env(COUNT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with(COUNTING)), "it never counted");
    let its = programs_of(child.id());
    assert!(!its.is_empty() && its.is_subset(&programs()), "{its:?}");
    assert_eq!(left_in_bpffs(), before);
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    while !its.is_disjoint(&programs()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{its:?} are still there");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left_in_bpffs(), before);
}
