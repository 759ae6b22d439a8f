//! Sets the soname of the shared library; see `install.sh`.

use std::env::var;

fn main() {
    let part = |name| var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let soname = match part("MAJOR").as_str() {
        "0" => format!("libtickless.so.0.{}", part("MINOR")),
        major => format!("libtickless.so.{major}"),
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    println!("cargo:rerun-if-changed=build.rs");
}
