//! Control groups (cgroups) of versions 1 and 2: their limits of CPU time, counters and threads.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CgroupError {
    #[error(
        "no control groups with CPU limits are mounted here. Mount them: mount -t cgroup2 none \
         /sys/fs/cgroup"
    )]
    NoHierarchy,
    #[error(
        "{path}: no control group has this path below {}. Look at /proc/PID/cgroup",
        .roots.join(", ")
    )]
    NoGroup { path: String, roots: Vec<String> },
    #[error(
        "{}: this control group does not count CPU time. Enable its controller: echo +cpu > {}",
        path.display(),
        path.with_file_name("cgroup.subtree_control").display()
    )]
    NoController { path: PathBuf },
    #[error("the mounts of control groups cannot be read ({0}). Mount /proc")]
    Mounts(io::Error),
}

/// A control group: a folder of a cgroup file system, which the kernel fills with files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    folder: PathBuf,
    /// The path below the mount point, with a slash before it.
    pub path: String,
}

/// How much CPU time a group may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limit {
    pub quota_us: u64,
    pub period_us: u64,
    pub burst_us: u64,
}

/// What the kernel has counted of a group since the group was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    pub periods: u64,
    /// The number of periods at whose end the group's quota was used up on some CPU.
    pub throttled: u64,
    /// How long the limit kept the group's threads stopped, added up over the CPUs.
    pub stood_ns: u64,
    /// The CPU time that was charged to the group; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_ns: Option<u64>,
}

/// Returns where the control groups that can have CPU limits are mounted.
pub fn hierarchies() -> Result<Vec<PathBuf>, CgroupError> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(CgroupError::Mounts)?;
    Ok(mounted(&mounts, has_cpu))
}

/// Returns where file systems of a wanted type and options are mounted, from the text of
/// `/proc/mounts`.
pub(crate) fn mounted(mounts: &str, is_wanted: impl Fn(&str, &str) -> bool) -> Vec<PathBuf> {
    let mount = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (path, kind, options) = (words.get(1)?, words.get(2)?, words.get(3)?);
        // The kernel writes a space in a path as \040.
        is_wanted(kind, options).then(|| PathBuf::from(path.replace("\\040", " ")))
    };
    mounts.lines().filter_map(mount).collect()
}

/// Returns whether a mount with these options has control groups with a CPU controller.
fn has_cpu(kind: &str, options: &str) -> bool {
    kind == "cgroup2" || kind == "cgroup" && options.split(',').any(|option| option == "cpu")
}

impl Cgroup {
    /// Returns the control group at the mount point `root`, and all groups below it.
    pub fn below(root: &Path) -> Vec<Cgroup> {
        let mut groups = vec![Cgroup::at(root.into(), root)];
        let mut next = 0;
        while let Some(group) = groups.get(next) {
            let entries = fs::read_dir(&group.folder).into_iter().flatten().flatten();
            let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            groups.extend(inner.map(|entry| Cgroup::at(entry.path(), root)));
            next += 1;
        }
        groups
    }

    fn at(folder: PathBuf, root: &Path) -> Cgroup {
        let path = format!("/{}", folder.strip_prefix(root).unwrap_or(&folder).display());
        Cgroup { folder, path }
    }

    /// Finds a group by its folder, or by its path below one of the mount points `roots`.
    pub fn find(path: &Path, roots: &[PathBuf]) -> Result<Cgroup, CgroupError> {
        if roots.is_empty() {
            return Err(CgroupError::NoHierarchy);
        }
        let inside = path.strip_prefix("/").unwrap_or(path);
        let whole =
            roots.iter().filter(|root| path.starts_with(root)).map(|root| (root, path.into()));
        let joined = roots.iter().map(|root| (root, root.join(inside)));
        let folders: Vec<(&PathBuf, PathBuf)> =
            whole.chain(joined).filter(|(_, folder)| folder.is_dir()).collect();
        let counts = folders.iter().find(|(_, folder)| folder.join("cpu.stat").exists());
        let Some((root, folder)) = counts.or(folders.first()) else {
            let roots = roots.iter().map(|root| root.display().to_string()).collect();
            return Err(CgroupError::NoGroup { path: path.display().to_string(), roots });
        };
        let group = Cgroup::at(folder.clone(), root);
        match group.counters() {
            Some(_) => Ok(group),
            None => Err(CgroupError::NoController { path: folder.clone() }),
        }
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    /// Returns the group's weight in percent of the default one.
    fn weight(&self) -> Option<u64> {
        let number = |file| self.text(file)?.trim().parse::<u64>().ok();
        number("cpu.weight").or_else(|| Some(number("cpu.shares")?.saturating_mul(100) / 1_024))
    }

    /// Returns the group's own limit; `None` if it has none, even if a parent group has one.
    pub fn limit(&self) -> Option<Limit> {
        let number = |file| self.text(file)?.trim().parse::<u64>().ok();
        if let Some(max) = self.text("cpu.max") {
            let mut words = max.split_whitespace().map(str::parse);
            let (quota_us, period_us) = (words.next()?.ok()?, words.next()?.ok()?);
            let burst_us = number("cpu.max.burst").unwrap_or(0);
            return Some(Limit { quota_us, period_us, burst_us });
        }
        // A quota of -1 means no limit. It fails to parse as an unsigned number.
        let (quota_us, period_us) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
        Some(Limit { quota_us, period_us, burst_us: number("cpu.cfs_burst_us").unwrap_or(0) })
    }

    /// Returns the tightest of the limits of this group and of those that it is in, with the group
    /// that has it. Threads stop when any of these groups has used up its quota.
    fn limiting(&self) -> Option<(Cgroup, Limit)> {
        let share = |limit: &Limit| limit.quota_us as f64 / limit.period_us.max(1) as f64;
        let groups = self.folder.ancestors().zip(Path::new(&self.path).ancestors());
        let groups = groups.map(|(folder, path)| Cgroup {
            folder: folder.to_path_buf(),
            path: path.display().to_string(),
        });
        let limited = groups.filter_map(|group| Some((group.limit()?, group)));
        let (limit, group) = limited.min_by(|(a, _), (b, _)| share(a).total_cmp(&share(b)))?;
        Some((group, limit))
    }

    /// Returns the group's counters; `None` if the group was removed, or has no counters.
    pub fn counters(&self) -> Option<Counters> {
        let stat = self.text("cpu.stat")?;
        let count = |key: &str| -> Option<u64> {
            stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
        };
        // Version 1 counts nanoseconds, version 2 microseconds.
        let in_us = || count("throttled_usec ").map(|us| us.saturating_mul(1_000));
        Some(Counters {
            periods: count("nr_periods ")?,
            throttled: count("nr_throttled ")?,
            stood_ns: count("throttled_time ").or_else(in_us)?,
            used_ns: count("usage_usec ").map(|us| us.saturating_mul(1_000)),
        })
    }

    /// Returns the threads of the group and of the groups in it.
    pub fn threads(&self) -> BTreeSet<u32> {
        let mut threads = BTreeSet::new();
        for group in Cgroup::below(&self.folder) {
            for file in ["tasks", "cgroup.threads"] {
                let numbers = group.text(file).unwrap_or_default();
                threads.extend(numbers.lines().filter_map(|line| line.parse::<u32>().ok()));
            }
        }
        threads
    }
}

impl Counters {
    #[must_use]
    pub fn since(self, before: Counters) -> Counters {
        Counters {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            stood_ns: self.stood_ns.saturating_sub(before.stood_ns),
            used_ns: self.used_ns.zip(before.used_ns).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Follows groups while a trace is recorded.
#[derive(Debug)]
pub struct Watch {
    groups: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    group: Cgroup,
    /// The group whose limit and counters these are: `group`, or one that it is in.
    owner: Cgroup,
    seen: Recorded,
    before: Counters,
}

impl Watch {
    /// Finds the group at `path`, or all groups that have a limit. Counts from [`Watch::start`] on.
    pub fn prepare(path: Option<&Path>) -> Result<Watch, CgroupError> {
        let roots = hierarchies()?;
        if let Some(path) = path {
            return Ok(Watch::limited(Cgroup::find(path, &roots)?));
        }
        if roots.is_empty() {
            return Err(CgroupError::NoHierarchy);
        }
        let groups = roots.iter().flat_map(|root| Cgroup::below(root));
        Ok(Watch::of(groups.filter(|group| group.limit().is_some())))
    }

    /// Follows groups by their own limits.
    fn of(groups: impl IntoIterator<Item = Cgroup>) -> Watch {
        let groups = groups.into_iter().map(|group| {
            let limit = group.limit();
            Watched::new(group.clone(), group, limit)
        });
        Watch { groups: groups.collect() }
    }

    /// Follows one group by the limit that stops it first, which can be that of a parent.
    fn limited(group: Cgroup) -> Watch {
        let watched = match group.limiting() {
            Some((owner, limit)) => Watched::new(group, owner, Some(limit)),
            None => Watched::new(group.clone(), group, None),
        };
        Watch { groups: vec![watched] }
    }

    /// Returns whether there is no group to follow.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Reads the counters. Call it right before the recording starts: the preparation of a
    /// recording can take several periods.
    pub fn start(&mut self) {
        for watched in &mut self.groups {
            watched.before = watched.owner.counters().unwrap_or_default();
        }
    }

    /// Reads the counters again. Call it right after the recording ends. A removed group has none.
    pub fn stop(&mut self) {
        for watched in &mut self.groups {
            watched.seen.counters = watched.counted();
        }
    }

    /// Returns the groups that used up their quota since [`Watch::start`].
    pub fn throttled(&self) -> Vec<Recorded> {
        let seen = self.groups.iter().filter_map(|watched| {
            let counters = watched.counted()?;
            let seen = Recorded { counters: Some(counters), ..watched.seen() };
            (counters.throttled > 0).then_some(seen)
        });
        seen.collect()
    }

    /// Returns what was seen of each group.
    pub fn seen(self) -> Vec<Recorded> {
        self.groups.iter().map(Watched::seen).collect()
    }
}

impl Watched {
    fn new(group: Cgroup, owner: Cgroup, limit: Option<Limit>) -> Watched {
        let (path, threads) = (group.path.clone(), group.threads());
        let limit_of = (owner.path != group.path).then(|| owner.path.clone());
        let seen =
            Recorded { path, limit, limit_of, weight: group.weight(), counters: None, threads };
        Watched { group, owner, seen, before: Counters::default() }
    }

    fn counted(&self) -> Option<Counters> {
        self.owner.counters().map(|counters| counters.since(self.before))
    }

    fn seen(&self) -> Recorded {
        let mut seen = self.seen.clone();
        seen.threads.extend(self.group.threads());
        seen
    }
}

/// A control group in a trace. `tickless record --events quota` adds one line for each group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recorded {
    pub path: String,
    /// The limit when the recording began; `None` if there was none.
    pub limit: Option<Limit>,
    /// The group whose limit and counters these are, if it is one that this group is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_of: Option<String>,
    /// The weight in percent of the default one; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// The change of the counters during the recording; `None` if the group was removed.
    pub counters: Option<Counters>,
    /// The threads in the group at the beginning and at the end of the recording.
    pub threads: BTreeSet<u32>,
}

const LINE: &str = "# cgroup ";

/// Writes the line that describes this group in a trace: the group as JSON.
impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.replace(char::is_control, " ");
        // This cannot fail: a group consists of numbers and text only.
        let json = serde_json::to_string(&Recorded { path, ..self.clone() }).unwrap_or_default();
        write!(f, "{LINE}{json}")
    }
}

impl Recorded {
    /// Parses a line of a trace; `None` if the line does not describe a control group.
    pub(crate) fn parse(line: &str) -> Option<Recorded> {
        serde_json::from_str(line.strip_prefix(LINE)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// Goal: limits and counters of both cgroup versions are read, and a trace's line keeps them.
    #[test]
    fn both_versions_are_read() {
        let v1 = folder(&[
            ("pod/cpu.cfs_quota_us", "25000\n"),
            ("pod/cpu.cfs_period_us", "100000\n"),
            ("pod/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 5000\nnr_bursts 1\n"),
            ("pod/tasks", "8\n"),
            ("pod/cpu.shares", "2048\n"),
            ("pod/in ner/tasks", "9\n8\n"),
            ("free/cpu.cfs_quota_us", "-1\n"),
            ("free/cpu.cfs_period_us", "100000\n"),
        ]);
        let v2 = folder(&[
            ("a/pod/cpu.max", "50000 200000\n"),
            ("a/pod/cpu.max.burst", "7000\n"),
            ("a/pod/cpu.weight", "200\n"),
            ("a/pod/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n"),
            ("a/pod/cgroup.threads", "9\n8\n"),
            ("max/cpu.max", "max 100000\n"),
            ("off/cpu.stat", "usage_usec 1\n"),
        ]);
        let roots = [&v1, &v2].map(|root| root.path().to_path_buf());
        for (path, quota_us, period_us, burst_us) in
            [("pod", 25_000, 100_000, 0), ("/a/pod", 50_000, 200_000, 7_000)]
        {
            let group = Cgroup::find(Path::new(path), &roots).unwrap();
            let limit = Some(Limit { quota_us, period_us, burst_us });
            let used_ns = (path == "/a/pod").then_some(1_000);
            let counters = Some(Counters { periods: 9, throttled: 4, stood_ns: 5_000, used_ns });
            let found = (group.limit(), group.counters(), group.threads(), group.weight());
            assert_eq!(found, (limit, counters, BTreeSet::from([8, 9]), Some(200)), "{path}");
            let (path, threads) = (group.path.clone(), group.threads());
            for (limit, counters) in [(limit, counters), (None, None)] {
                let (path, threads) = (path.clone(), threads.clone());
                let recorded =
                    Recorded { path, limit, limit_of: None, weight: None, counters, threads };
                assert_eq!(Recorded::parse(&recorded.to_string()), Some(recorded));
            }
        }
        let with_limit = |root: &TempDir| -> Vec<String> {
            let groups = Cgroup::below(root.path()).into_iter();
            groups.filter(|it| it.limit().is_some()).map(|it| it.path).collect()
        };
        assert_eq!(
            (with_limit(&v1), with_limit(&v2)),
            (vec!["/pod".into()], vec!["/a/pod".into()])
        );
        let refused = |path: &str, roots: &[PathBuf]| {
            Cgroup::find(Path::new(path), roots).unwrap_err().to_string()
        };
        assert!(refused("/none", &roots).contains("/none: no control group"));
        assert!(refused("off", &roots).contains("echo +cpu > "));
        assert!(refused("pod", &[]).contains("mount -t cgroup2"));
    }

    /// Goal: the counters are those of the recording, not of its preparation; a group that was
    /// removed has none.
    #[test]
    fn counters_are_of_the_recording() {
        let stat =
            |periods: u64| format!("nr_periods {periods}\nnr_throttled 4\nthrottled_usec 5\n");
        let root = folder(&[("pod/cpu.stat", &stat(9)), ("pod/tasks", "8\n")]);
        let group = Cgroup::find(Path::new("pod"), &[root.path().into()]).unwrap();
        let mut watch = Watch::of([group]);
        for periods in [20, 50] {
            fs::write(root.path().join("pod/cpu.stat"), stat(periods)).unwrap();
            if periods == 20 { watch.start() } else { watch.stop() }
        }
        let counters = watch.groups[0].seen.counters;
        assert_eq!(counters, Some(Counters { periods: 30, ..Counters::default() }));
        fs::remove_dir_all(root.path().join("pod")).unwrap();
        watch.stop();
        let [seen] = &watch.seen()[..] else { panic!("one group") };
        assert_eq!((seen.counters, &seen.threads), (None, &BTreeSet::from([8])));
    }

    /// Goal: a group without a limit of its own, or with a looser one, has that of its parent, and
    /// the parent's counters.
    #[test]
    fn limits_of_parents_count() {
        let root = folder(&[
            ("par/cpu.max", "30000 100000\n"),
            ("par/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 5\n"),
            ("par/child/cpu.max", "max 100000\n"),
            ("par/child/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
            ("par/child/cgroup.threads", "8\n"),
            ("par/loose/cpu.max", "80000 100000\n"),
            ("par/tight/cpu.max", "10000 100000\n"),
            ("par/cgroup.threads", "7\n"),
        ]);
        for (path, quota_us, of) in [
            ("par", 30_000, None),
            ("par/child", 30_000, Some("/par")),
            ("par/loose", 30_000, Some("/par")),
            ("par/tight", 10_000, None),
        ] {
            let mut watch = Watch::limited(Cgroup::at(root.path().join(path), root.path()));
            watch.stop();
            let [seen] = &watch.seen()[..] else { panic!("one group") };
            assert_eq!(seen.limit.map(|limit| limit.quota_us), Some(quota_us), "{path}");
            assert_eq!(seen.limit_of.as_deref(), of, "{path}");
            let counters = seen.counters.map(|counters| counters.throttled);
            assert_eq!(counters, (path != "par/tight").then_some(4), "{path}");
            assert_eq!(seen.threads.contains(&7), path == "par", "{path}");
        }
    }

    #[test]
    fn hierarchies_that_have_the_cpu() {
        let mounts = "cgroup /c/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup /c/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup /c/both cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup2 /c/t\\040wo cgroup2 rw 0 0\nbroken\n";
        let found = mounted(mounts, has_cpu);
        assert_eq!(found, ["/c/cpu", "/c/both", "/c/t wo"].map(PathBuf::from));
    }
}
