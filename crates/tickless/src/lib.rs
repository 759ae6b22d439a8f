//! Timers for programs: the host platform and the public API.
