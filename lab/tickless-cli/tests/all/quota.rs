//! `tickless quota`, and the recording for it on this machine's kernel.

use crate::live::{alone, skip, tracefs};
use crate::run::{Ended, json, path, prints, program, tickless};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

#[test]
fn a_prediction_has_a_page() {
    prints("quota traces/bursts.txt.gz --html bursts.html");
    let page = fs::read_to_string(path("bursts.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("What this cannot know"), "{page}");
    assert!(page.contains("default-src 'none'") && !page.contains("<script"));
}

/// A group in the cpu controller of version 1, with a program that works now and then.
struct Group {
    folder: &'static str,
    load: Child,
}

impl Group {
    fn start() -> Option<Group> {
        const FOLDER: &str = "/sys/fs/cgroup/cpu/tickless-test-quota";
        if !Path::new("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() {
            skip("there is no version 1 cpu controller");
            return None;
        }
        let _ = fs::create_dir(FOLDER);
        const LOAD: &str = "echo $$ > \"$0/cgroup.procs\" && \
             while :; do for i in 1 2 3 4 5 6 7 8 9; do :; done; sleep 0.01; done";
        let load = Command::new("sh").args(["-c", LOAD, FOLDER]).spawn().unwrap();
        Some(Group { folder: FOLDER, load })
    }

    fn end(&mut self) {
        let _ = self.load.kill();
        let _ = self.load.wait();
        for _ in 0..1_000 {
            if fs::remove_dir(self.folder).is_ok() || !Path::new(self.folder).exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// The threads of a recorded group, and what it made, are found. A group that is removed during the
/// recording is named.
#[test]
fn a_group_is_recorded() {
    let Some(_) = tracefs() else { return };
    let _alone = alone();
    let Some(mut group) = Group::start() else { return };
    let record = |duration| {
        let group = "--events quota --cgroup tickless-test-quota";
        program(&format!("record --force {group} -D {duration} -o group.txt.gz"))
    };
    let _ = Ended::of(&mut record("1s")).exits(0, &["tickless quota group.txt.gz"]);
    let found = json("quota group.txt.gz");
    assert_eq!(found["group"], "/tickless-test-quota");
    assert!(found["pieces"].as_u64() > Some(10), "{found:#}");
    assert_eq!(found["recorded"]["throttled"], 0);
    let recorder = record("2s").spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    group.end();
    let ended = Ended::from(recorder.wait_with_output().unwrap());
    let _ = ended.exits(0, &["/tickless-test-quota: this control group was removed"]);
    let table = tickless("quota group.txt.gz").exits(0, &[]).out;
    assert!(table.contains("the group was removed while it was recorded"), "{table}");
}
