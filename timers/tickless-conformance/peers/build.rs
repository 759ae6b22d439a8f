//! Compiles the calls of libev and libuv, with the feature `foreign`. Both are linked statically,
//! so that they read the clock by the function that the program replaces.

fn main() {
    println!("cargo::rerun-if-changed=c");
    #[cfg(feature = "foreign")]
    {
        cc::Build::new().files(["c/libev.c", "c/libuv.c"]).compile("loops");
        for library in ["ev", "uv_a"] {
            println!("cargo::rustc-link-lib=static:-bundle={library}");
        }
    }
}
