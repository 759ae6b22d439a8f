//! Finds the CPU quotas of cgroups: version 1 (`cpu.cfs_quota_us`) and 2 (`cpu.max`), wherever they
//! are mounted.

use super::text;
use crate::doctor::facts::{Quota, Seen};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn find() -> Seen<Vec<Quota>> {
    let mounts = text(Path::new("/proc/self/mounts"))?;
    let mut quotas = Vec::new();
    for root in hierarchies(&mounts) {
        below(&root, &mut quotas);
    }
    Ok(quotas)
}

pub fn below(root: &Path, quotas: &mut Vec<Quota>) {
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if let Some((quota_us, period_us)) = quota(&folder) {
            let group = folder.strip_prefix(root).unwrap_or(&folder);
            let group = format!("/{}", group.display());
            quotas.push(Quota { group, quota_us, period_us });
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        folders.extend(entries.filter(is_folder).map(|entry| entry.path()));
    }
}

fn hierarchies(mounts: &str) -> Vec<PathBuf> {
    let mount = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (path, kind, options) = (words.get(1)?, words.get(2)?, words.get(3)?);
        let has_cpu = options.split(',').any(|option| option == "cpu");
        let is_wanted = *kind == "cgroup2" || *kind == "cgroup" && has_cpu;
        is_wanted.then(|| PathBuf::from(path.replace("\\040", " ")))
    };
    mounts.lines().filter_map(mount).collect()
}

fn quota(group: &Path) -> Option<(u64, u64)> {
    if let Ok(max) = fs::read_to_string(group.join("cpu.max")) {
        let mut words = max.split_whitespace();
        return Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?));
    }
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
    // A quota of -1 means no limit. It fails to parse as an unsigned number.
    Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_quotas() {
        let root = std::env::temp_dir().join(format!("tickless-quotas-{}", std::process::id()));
        let write = |path: &str, value: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        };
        write("one/cpu.cfs_quota_us", "25000\n");
        write("one/cpu.cfs_period_us", "100000\n");
        write("none/cpu.cfs_quota_us", "-1\n");
        write("none/cpu.cfs_period_us", "100000\n");
        write("a/deep/two/cpu.max", "50000 200000\n");
        write("max/cpu.max", "max 100000\n");
        let mut quotas = Vec::new();
        below(&root, &mut quotas);
        fs::remove_dir_all(&root).unwrap();
        quotas.sort_by(|one, other| one.group.cmp(&other.group));
        let quota = |group: &str, quota_us, period_us| Quota {
            group: group.to_string(),
            quota_us,
            period_us,
        };
        assert_eq!(quotas, [quota("/a/deep/two", 50_000, 200_000), quota("/one", 25_000, 100_000)]);
    }

    #[test]
    fn hierarchies_that_have_the_cpu() {
        let mounts = "cgroup /c/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup /c/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup /c/both cgroup rw,cpu,cpuacct 0 0\ncgroup2 /c/two cgroup2 rw 0 0\n";
        assert_eq!(hierarchies(mounts), ["/c/cpu", "/c/both", "/c/two"].map(PathBuf::from));
    }
}
