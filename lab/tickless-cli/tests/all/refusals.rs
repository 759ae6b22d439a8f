//! Messages about a kernel that lacks something, and about another tracer: the cause, what still
//! works, and what to do. Nothing is left behind.
//!
//! Method: a mount namespace in which files are hidden, and capabilities that are given up. Neither
//! is visible to other processes.

use crate::live::{instances_of, skip, tracefs};
use crate::run::{Ended, PROGRAM, path};
use std::process::{Command, Stdio};

/// The status of a shell that cannot hide a file.
const NOT_HIDDEN: i32 = 99;

/// Runs the program as root.
const AS_ROOT: &str = "exec \"$@\"";

/// Runs the program as a root that may neither mount nor load eBPF programs.
const WITHOUT_CAPABILITIES: &str = "exec setpriv --bounding-set -bpf,-perfmon,-sys_admin \
                                    --inh-caps -bpf,-perfmon,-sys_admin \"$@\"";

/// Sets `$TRACEFS`, and mounts it first if it is not mounted: a program without the right to mount
/// could not, and there would be nothing to hide.
const FIND_TRACEFS: &str = "\
    TRACEFS=$(sed -n 's/^[^ ]* \\([^ ]*\\) tracefs .*/\\1/p' /proc/self/mounts | head -n 1); \
    [ -n \"$TRACEFS\" ] || { mount -t tracefs none /sys/kernel/tracing && \
                            TRACEFS=/sys/kernel/tracing; }";

/// A run of the program on a machine that lacks something: the command line, its exit status, and
/// the words that its messages and its results must have.
type Run<'a> = (&'a str, i32, &'a [&'a str], &'a str);

/// Runs command lines after `hide`, a shell's commands; `with` runs the program. `$TRACEFS` is
/// tracefs, `$PLACE` a folder to mount on. Does nothing, after a message, if that is impossible.
fn without(hide: &str, with: &str, runs: &[Run]) {
    let Some(tracefs) = tracefs() else { return };
    let place = path("refusals");
    std::fs::create_dir_all(&place).unwrap();
    let script = format!("{FIND_TRACEFS}; {{ {hide}; }} || exit {NOT_HIDDEN}; {with}");
    for (line, status, messages, shown) in runs {
        let child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh", PROGRAM])
            .args(line.split(' '))
            .env("PLACE", &place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(child) = child else { return skip("there is no unshare") };
        // The program takes the shell's place, and its number.
        let pid = child.id();
        let ended = Ended::from(child.wait_with_output().unwrap());
        if !matches!(ended.status, Some(0 | 1)) {
            return skip(format_args!("nothing can be hidden here: {}", ended.err));
        }
        assert!(instances_of(&tracefs, pid).is_empty(), "{line}");
        let ended = ended.exits(*status, messages);
        assert!(ended.out.contains(shown), "{line}: {ended:?}");
    }
}

#[test]
fn a_refusal_of_ebpf_has_its_reason() {
    const LOCKED_DOWN: &str = "cd /sys/kernel/security && mount -t tmpfs none . && \
                               echo 'none [confidentiality]' > /sys/kernel/security/lockdown";
    for (hide, with, why) in [
        ("mount -t tmpfs none /sys/kernel/btf", AS_ROOT, "no /sys/kernel/btf/vmlinux"),
        ("mount --bind /dev/null /proc/kallsyms", AS_ROOT, "kernel.kptr_restrict"),
        (LOCKED_DOWN, WITHOUT_CAPABILITIES, "locked down"),
        ("true", WITHOUT_CAPABILITIES, "Operation not permitted"),
    ] {
        let advice = "`tickless record` and `tickless late` do without";
        without(hide, with, &[("top --once -i 100ms -n 3", 1, &[why, advice], "")]);
    }
}

const RECORD: &str = "record -D 50ms --force -o /dev/null";
const LATE: &str = "late --watch -D 50ms";

#[test]
fn every_command_reports_a_kernel_without_timer_events() {
    let break_at = "latency --break 1ms -l 5 -o /dev/null --force";
    let message: &[&str] = &["has no timer events. Record on a kernel with"];
    let [record, late, latency] = [RECORD, LATE, break_at].map(|line| (line, 1, message, ""));
    let doctor = "doctor -D 50ms --check tick-wakers";
    let runs = [
        record,
        late,
        latency,
        (doctor, 0, &[], "unknown"),
        (doctor, 0, &[], "has no timer events"),
    ];
    without("mount -t tmpfs none \"$TRACEFS/events\"", AS_ROOT, &runs);
}

#[test]
fn a_kernel_without_some_events_gives_partial_results() {
    let hide = "mount -t tmpfs none \"$PLACE\" && mkdir \"$PLACE/timer\" && \
                mount --bind \"$TRACEFS/events/timer\" \"$PLACE/timer\" && \
                mount --rbind \"$PLACE\" \"$TRACEFS/events\"";
    let runs = [(RECORD, ""), (LATE, "no sched_switch")];
    let messages: &[&str] = &["no irq_vectors:local_timer_*", "nor msr:write_msr"];
    without(hide, AS_ROOT, &runs.map(|(line, shown)| (line, 0, messages, shown)));
}

#[test]
fn another_tracer_is_named_and_left_alone() {
    let hide = "echo function > \"$PLACE/tracer\" && \
                mount --bind \"$PLACE/tracer\" \"$TRACEFS/current_tracer\"";
    let messages: &[&str] = &["another tracer is at work (function)", "echo nop >"];
    without(hide, AS_ROOT, &[RECORD, LATE].map(|line| (line, 0, messages, "")));
}

#[test]
fn a_missing_tracefs_is_mounted_for_the_program_alone() {
    let hide = "umount -a -t tracefs && ! grep -q ' tracefs ' /proc/self/mounts";
    without(hide, AS_ROOT, &[(RECORD, 0, &[], "")]);
    without(hide, WITHOUT_CAPABILITIES, &[(RECORD, 1, &["sudo"], "")]);
}
