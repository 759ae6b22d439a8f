//! Why a program cannot be run in virtual time, and what to do about it.

use std::io;
use thiserror::Error;

/// An error before the program has begun.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WarpError {
    /// This build of Tickless is for a system on which time cannot be virtual.
    #[error(
        "virtual time for whole programs needs Linux on x86-64. In Rust code, \
         `tickless::VirtualTime` runs anywhere."
    )]
    Platform,
    /// The program does not exist, or cannot be run.
    #[error("{name}: cannot be run ({error})")]
    Program {
        /// The program's name, as given.
        name: String,
        /// What execve(2) returned.
        error: io::Error,
    },
    /// The kernel or its policy refuses ptrace(2).
    #[error("the kernel refuses to trace the program ({error}). {advice}")]
    NoPtrace {
        /// What ptrace(2) returned.
        error: io::Error,
        /// What allows it.
        advice: String,
    },
    /// The kernel or its policy refuses a seccomp filter.
    #[error(
        "the kernel refuses a filter for system calls ({error}). It needs CONFIG_SECCOMP_FILTER \
         (Linux 3.17 or later), and a container whose policy allows seccomp(2)."
    )]
    NoSeccomp {
        /// What seccomp(2) returned.
        error: io::Error,
    },
    /// No process or pipe could be made.
    #[error("cannot make a process ({error}). End some processes, or raise the limits (ulimit).")]
    Process {
        /// What the system call returned.
        error: io::Error,
    },
    /// The memory file for the virtual clock could not be made.
    #[error("cannot make the memory of the clock ({error}); it needs memfd_create (Linux 3.17).")]
    Clock {
        /// What the system call returned.
        error: io::Error,
    },
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl WarpError {
    /// Finds out what refuses ptrace(2).
    pub(crate) fn no_ptrace(error: io::Error) -> WarpError {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        let tracer = tracer.map(str::trim).filter(|pid| *pid != "0");
        let scope = read("/proc/sys/kernel/yama/ptrace_scope");
        WarpError::NoPtrace { error, advice: advice(tracer, scope.trim()) }
    }
}

/// Returns advice on how to allow ptrace(2). It depends on the process's tracer, if there is one,
/// and on the setting of Yama, a kernel policy.
fn advice(tracer: Option<&str>, scope: &str) -> String {
    let text = match (tracer, scope) {
        (Some(pid), _) => {
            return format!(
                "Process {pid} traces this one, and with it the program: a debugger, strace, or \
                 another `tickless warp`. Run it without."
            );
        }
        (None, "3") => {
            "Yama forbids all tracing: kernel.yama.ptrace_scope is 3, which only a reboot changes."
        }
        (None, "2") => {
            "Yama allows tracing to root only: run it with sudo, or set \
             kernel.yama.ptrace_scope to 1."
        }
        _ => {
            "In a container, allow it: docker run --cap-add SYS_PTRACE, or \
             --security-opt seccomp=unconfined."
        }
    };
    text.to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn advice_names_what_refuses() {
        let has = |tracer, scope, text| assert!(super::advice(tracer, scope).contains(text));
        has(None, "3", "reboot");
        has(None, "2", "sudo");
        has(None, "1", "SYS_PTRACE");
        has(None, "", "SYS_PTRACE");
        has(Some("7"), "3", "Process 7");
    }
}
