//! Words of which each thread has its own, for the paths on which a few instructions matter.
//!
//! In a shared library, every access to a `thread_local!` variable calls `__tls_get_addr`: 14
//! instructions, and all registers that a call may change. The words here are accessed through
//! TLS descriptors instead: 5 instructions, and one register. The linker of a program turns these
//! into an access without a call. Unlike the "initial exec" model, which needs 2, descriptors work
//! in a library that is loaded by `dlopen`, however many words other libraries have.
//!
//! Source: A. Oliva and G. Araújo, "Speeding Up Thread-Local Storage Access in Dynamic Libraries"
//! (2006). Without the feature `tls-descriptors`, on other architectures and under Miri, a word is
//! a `thread_local!` variable: a Rust `dylib` does not export the symbols of assembly, so that
//! generic functions which its users instantiate would not find them.

/// Declares a type with the functions `get` and `set` for the calling thread's word. The word is a
/// pointer. It begins as the address of the static `$initial`, which must have no other word.
#[cfg(all(feature = "tls-descriptors", target_arch = "x86_64", target_os = "linux", not(miri)))]
#[macro_export(local_inner_macros)]
#[doc(hidden)]
macro_rules! thread_word {
    ($(#[$doc:meta])* $name:ident: *const $type:ty = $initial:ident) => {
        $(#[$doc])*
        struct $name;

        // The word's symbol is that of the static with a suffix, and so as unique as that.
        core::arch::global_asm!(
            ".pushsection .tdata.tickless, \"awT\", @progbits",
            ".p2align 3",
            ".globl {initial}_word",
            ".type {initial}_word, @object",
            ".size {initial}_word, 8",
            "{initial}_word: .quad {initial}",
            ".popsection",
            initial = sym $initial,
        );

        impl $name {
            #[inline(always)]
            fn get() -> *const $type {
                let word;
                thread_word!(@access $initial, "mov {}, fs:[rax]", out(reg) word);
                word
            }

            fn set(word: *const $type) {
                thread_word!(@access $initial, "mov fs:[rax], {}", in(reg) word);
            }
        }
    };
    (@access $initial:ident, $access:literal, $($operand:tt)*) => {
        // SAFETY: the call of a descriptor changes no register but `rax` and the flags; those of
        // older versions of glibc can change vector registers, too. Only this thread has the word.
        unsafe {
            core::arch::asm!(
                "lea rax, [rip + {initial}_word@TLSDESC]",
                "call qword ptr [rax + {initial}_word@TLSCALL]",
                $access,
                $($operand)*,
                initial = sym $initial,
                out("rax") _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            );
        }
    };
}

/// As above, by `thread_local!`.
#[cfg(not(all(
    feature = "tls-descriptors",
    target_arch = "x86_64",
    target_os = "linux",
    not(miri)
)))]
#[macro_export]
#[doc(hidden)]
macro_rules! thread_word {
    ($(#[$doc:meta])* $name:ident: *const $type:ty = $initial:ident) => {
        $(#[$doc])*
        struct $name;

        impl $name {
            #[inline(always)]
            fn get() -> *const $type {
                $name::word().get()
            }

            fn set(word: *const $type) {
                $name::word().set(word);
            }

            #[inline(always)]
            fn word() -> &'static std::thread::LocalKey<core::cell::Cell<*const $type>> {
                std::thread_local! {
                    static WORD: core::cell::Cell<*const $type> =
                        const { core::cell::Cell::new(&raw const $initial) };
                }
                &WORD
            }
        }
    };
}

pub(super) use thread_word;
