//! The committed C header equals the one made from the sources. `TICKLESS_HEADER=write` updates it.

// Tests panic and print.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::fn_params_excessive_bools)]
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

use cbindgen::{Builder, Config};
use std::fmt::Write;
use std::path::Path;

/// In the order of the header.
const SOURCES: [&str; 16] = [
    "version.rs",
    "status.rs",
    "options.rs",
    "timers.rs",
    "stats.rs",
    "fired.rs",
    "timer.rs",
    "periodic.rs",
    "clock_timer.rs",
    "bandwidth.rs",
    "labels.rs",
    "event_loop.rs",
    "virtual_time.rs",
    "local.rs",
    "local_batches.rs",
    "fixed.rs",
];

#[test]
fn committed_header_matches_the_sources() {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../timers/tickless-capi");
    let path = root.join("include/tickless.h");
    let made = made(root);
    if std::env::var("TICKLESS_HEADER").as_deref() == Ok("write") {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(line) = made.lines().zip(committed.lines()).position(|(a, b)| a != b) {
        let at = |text: &str| text.lines().nth(line).unwrap_or_default().to_string();
        let (made, committed) = (at(&made), at(&committed));
        panic!(
            "include/tickless.h differs from line {} on:\n  made:      {made}\n  committed: \
             {committed}\nupdate it: TICKLESS_HEADER=write cargo test -p tickless-tidy \
             --test header",
            line + 1
        );
    }
    assert_eq!(made.len(), committed.len(), "one header ends before the other");
}

fn made(root: &Path) -> String {
    let mut config = Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    config.header = Some(read(&root.join("header/head.txt")));
    let mut builder = Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src").join(source));
    }
    let mut bytes = Vec::new();
    builder.generate().expect("the sources can be read").write(&mut bytes);
    let header = String::from_utf8(bytes).expect("a header is text");
    let end = "#endif  /* TICKLESS_H */";
    let tail = read(&root.join("header/tail.txt")) + end;
    for_readers(&header.replace(end, &tail))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names as C has them.
fn for_readers(header: &str) -> String {
    let header = header
        .replace("TICKLESS_STATUS_T_", "TICKLESS_")
        .replace("TICKLESS_CANCEL_T_", "TICKLESS_CANCEL_");
    let mut out = String::new();
    for line in header.trim_start().lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
