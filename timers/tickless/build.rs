//! Sets the platform that the library stands on: `linux_platform`, or else the portable one. That
//! is chosen by the target; `RUSTFLAGS="--cfg tickless_portable"` has the portable one on Linux,
//! where its tests run.

use std::env::var_os;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(linux_platform)");
    let is_linux = var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux");
    if is_linux && var_os("CARGO_CFG_TICKLESS_PORTABLE").is_none() {
        println!("cargo:rustc-cfg=linux_platform");
    }
}
