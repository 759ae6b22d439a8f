//! Messages about a kernel that lacks something, and about another tracer: the cause, what still
//! works, and what to do. Nothing is left behind.
//!
//! Method: a mount namespace in which files are hidden, and capabilities that are given up. Neither
//! is visible to other processes.

use crate::live::{instances_of, skip, tracefs};
use crate::run::{PROGRAM, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The status of a shell that cannot hide a file.
const NOT_HIDDEN: i32 = 99;

/// Before a program that is root and may neither mount nor load eBPF programs.
const WITHOUT_CAPABILITIES: &str = "exec setpriv --bounding-set -bpf,-perfmon,-sys_admin \
                                    --inh-caps -bpf,-perfmon,-sys_admin \"$@\"";

/// Sets `$TRACEFS`, and mounts it first if it is not mounted: a program without the right to mount
/// could not, and there would be nothing to hide.
const FIND_TRACEFS: &str = "\
    TRACEFS=$(sed -n 's/^[^ ]* \\([^ ]*\\) tracefs .*/\\1/p' /proc/self/mounts | head -n 1); \
    [ -n \"$TRACEFS\" ] || { mount -t tracefs none /sys/kernel/tracing && \
                            TRACEFS=/sys/kernel/tracing; }";

/// Runs the program after `hide`, a shell's commands; `with` runs it. `$TRACEFS` is tracefs,
/// `$PLACE` a folder to mount on. None, after a message, if that is impossible.
fn run(test: &str, hide: &str, with: &str, args: &[&str]) -> Option<Output> {
    let tracefs = tracefs(test)?;
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("refusals");
    std::fs::create_dir_all(&place).unwrap();
    let script = format!("{FIND_TRACEFS}; {{ {hide}; }} || exit {NOT_HIDDEN}; {with}");
    let child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh", PROGRAM])
        .args(args)
        .env("PLACE", &place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(child) = child else {
        skip(test, "there is no unshare");
        return None;
    };
    // The program takes the shell's place, and its number.
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    if !matches!(output.status.code(), Some(0 | 1)) {
        skip(test, format_args!("nothing can be hidden here: {}", stderr(&output)));
        return None;
    }
    assert!(instances_of(&tracefs, pid).is_empty(), "{args:?}");
    Some(output)
}

const ONCE: [&str; 6] = ["top", "--once", "-i", "100ms", "-n", "3"];

/// `auto` continues with tracefs, and `--source ebpf` names that alternative.
#[test]
fn a_refusal_of_ebpf_has_its_reason() {
    const NAME: &str = "a_refusal_of_ebpf_has_its_reason";
    const AS_ROOT: &str = "exec \"$@\"";
    const LOCKED_DOWN: &str = "cd /sys/kernel/security && mount -t tmpfs none . && \
                               echo 'none [confidentiality]' > /sys/kernel/security/lockdown";
    for (hide, with, why) in [
        ("mount -t tmpfs none /sys/kernel/btf", AS_ROOT, "no /sys/kernel/btf/vmlinux"),
        ("mount --bind /dev/null /proc/kallsyms", AS_ROOT, "kernel.kptr_restrict"),
        (LOCKED_DOWN, WITHOUT_CAPABILITIES, "locked down"),
        ("true", WITHOUT_CAPABILITIES, "Operation not permitted"),
    ] {
        let Some(output) = run(NAME, hide, with, &ONCE) else { return };
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.contains(why) && message.contains("Now from tracefs."), "{message}");
        assert!(stdout(&output).contains("from tracefs:"));
        let ebpf = [&ONCE[..], &["--source", "ebpf"]].concat();
        let Some(output) = run(NAME, hide, with, &ebpf) else { return };
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(why) && message.contains("--source tracefs"), "{message}");
    }
}

/// It has advice. The doctor reports its checks as unknown.
#[test]
fn every_command_reports_a_kernel_without_timer_events() {
    const NAME: &str = "every_command_reports_a_kernel_without_timer_events";
    let hide = "mount -t tmpfs none \"$TRACEFS/events\"";
    let top = [&ONCE[..], &["--source", "tracefs"]].concat();
    for args in [
        &top[..],
        &["record", "-D", "50ms", "--force", "-o", "/dev/null"],
        &["late", "--watch", "-D", "50ms"],
        &["latency", "--break", "1ms", "-l", "5", "-o", "/dev/null", "--force"],
    ] {
        let Some(output) = run(NAME, hide, "exec \"$@\"", args) else { return };
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.contains("has no timer events. Record on a kernel with"), "{message}");
    }
    let doctor = ["doctor", "-D", "50ms", "--check", "tick-wakers"];
    let Some(output) = run(NAME, hide, "exec \"$@\"", &doctor) else { return };
    let shown = stdout(&output);
    assert!(shown.contains("unknown") && shown.contains("has no timer events"), "{shown}");
}

/// The missing events are reported. Unknown columns of `top` are `-`, and `late` names what it
/// cannot explain.
#[test]
fn a_kernel_without_some_events_gives_partial_results() {
    const NAME: &str = "a_kernel_without_some_events_gives_partial_results";
    let hide = "mount -t tmpfs none \"$PLACE\" && mkdir \"$PLACE/timer\" && \
                mount --bind \"$TRACEFS/events/timer\" \"$PLACE/timer\" && \
                mount --rbind \"$PLACE\" \"$TRACEFS/events\"";
    let top = [&ONCE[..], &["--source", "tracefs", "--format", "json"]].concat();
    for (args, shown) in [
        (&top[..], r#""idle_wakeups":null"#),
        (&["record", "-D", "50ms", "--force", "-o", "/dev/null"], ""),
        (&["late", "--watch", "-D", "50ms"], "no sched_switch"),
    ] {
        let Some(output) = run(NAME, hide, "exec \"$@\"", args) else { return };
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
        assert!(message.contains("no irq_vectors:local_timer_*"), "{args:?}: {message}");
        assert!(message.contains("no msr:write_msr"), "{args:?}: {message}");
        let out = stdout(&output);
        assert!(out.contains(shown), "{out}");
    }
}

/// Every command that records names it, and continues.
#[test]
fn another_tracer_is_named_and_left_alone() {
    const NAME: &str = "another_tracer_is_named_and_left_alone";
    let hide = "echo function > \"$PLACE/tracer\" && \
                mount --bind \"$PLACE/tracer\" \"$TRACEFS/current_tracer\"";
    let top = [&ONCE[..], &["--source", "tracefs"]].concat();
    for args in [
        &top[..],
        &["record", "-D", "50ms", "--force", "-o", "/dev/null"],
        &["late", "--watch", "-D", "50ms"],
    ] {
        let Some(output) = run(NAME, hide, "exec \"$@\"", args) else { return };
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
        assert!(message.contains("another tracer is at work (function)"), "{args:?}: {message}");
        assert!(message.contains("echo nop >"), "{args:?}: {message}");
    }
}

/// Without the right to mount, the message advises to run as root.
#[test]
fn a_missing_tracefs_is_mounted_for_the_program_alone() {
    const NAME: &str = "a_missing_tracefs_is_mounted_for_the_program_alone";
    let hide = "umount -a -t tracefs && ! grep -q ' tracefs ' /proc/self/mounts";
    let record = ["record", "-D", "50ms", "--force", "-o", "/dev/null"];
    let Some(output) = run(NAME, hide, "exec \"$@\"", &record) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let Some(output) = run(NAME, hide, WITHOUT_CAPABILITIES, &record) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("sudo"), "{}", stderr(&output));
}
