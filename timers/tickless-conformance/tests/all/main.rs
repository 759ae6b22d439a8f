//! The suite's tests, as one binary, because linking takes longer than most of them.

// A test fails by panicking, and may print and sleep.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic)]

mod faulty;
mod local;

use tickless_conformance::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
