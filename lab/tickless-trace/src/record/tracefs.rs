//! Finds tracefs, or mounts it such that only this process sees it.

use crate::cgroup::mounted;
use crate::record::error::RecordError;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Tracefs {
    pub root: PathBuf,
    /// Keeps a mount that has no path, so that no other process sees it. The kernel removes the
    /// mount when the process ends.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds tracefs. If it is not mounted, mounts it such that only this process sees it. Makes a
    /// few system calls, which do not block.
    pub fn find() -> Result<Tracefs, RecordError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let tracefs = match mounted(&mounts, |kind, _| kind == "tracefs").into_iter().next() {
            Some(root) => Tracefs::at(root),
            None => Tracefs::mount()?,
        };
        match fs::read_dir(tracefs.root.join("instances")) {
            Ok(_) => Ok(tracefs),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(RecordError::NotPermitted)
            }
            Err(error) => Err(RecordError::NotMounted(error)),
        }
    }

    pub fn at(root: PathBuf) -> Tracefs {
        Tracefs { root, _mount: None }
    }

    /// Returns those of the events that this kernel has.
    pub fn having(&self, events: &[&str]) -> Vec<String> {
        let path = |event: &str| self.root.join("events").join(event.replacen(':', "/", 1));
        let has = |event: &&&str| path(event).is_dir();
        events.iter().filter(has).map(ToString::to_string).collect()
    }

    /// Mounts tracefs for this process alone: it is reached through a descriptor.
    fn mount() -> Result<Tracefs, RecordError> {
        let open = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).and_then(|context| {
            fsconfig_create(&context)?;
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        });
        let mount = open.map_err(refused)?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs { root, _mount: Some(mount) })
    }
}

fn refused(errno: Errno) -> RecordError {
    match errno {
        Errno::PERM | Errno::ACCESS => RecordError::NotPermitted,
        Errno::NODEV => RecordError::NoTracefs,
        errno => RecordError::NotMounted(errno.into()),
    }
}
