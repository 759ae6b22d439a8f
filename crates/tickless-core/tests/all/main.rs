//! The core's tests: one binary, since linking takes longer than most of them.

mod bandwidth;
mod cancel;
mod cancel_sync;
mod deferred;
mod device;
mod device_faults;
mod expiry;
mod local;
mod migrate;
mod pending;
mod periodic;
mod phase;
mod queue;
mod rearm;
mod threads;
mod wheel;
mod world;
