#!/usr/bin/env bash
# Builds the C library and installs it with its headers and its pkg-config file.
# Usage: [PREFIX=/usr/local] [LIBDIR=$PREFIX/lib] [DESTDIR=] [PROFILE=release] install.sh
# The soname is libtickless.so.MAJOR.MINOR as long as MAJOR is 0: until then MINOR may break.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
root=${DESTDIR:-}
profile=${PROFILE:-release}

version=$(cargo pkgid | sed 's/.*[#@]//')
IFS=. read -r major minor _ <<<"$version"
soname=libtickless.so.$major
[ "$major" -gt 0 ] || soname=$soname.$minor

cargo build --locked --lib --profile "$profile"
target=$(cargo metadata --no-deps --format-version 1)
target=$(sed 's/.*"target_directory":"\([^"]*\)".*/\1/' <<<"$target")
[ "$profile" = dev ] && built=$target/debug || built=$target/$profile

install -d "$root$libdir/pkgconfig" "$root$prefix/include"
install -m 644 include/tickless.h include/tickless.hpp "$root$prefix/include"
install -m 644 "$built/libtickless_capi.a" "$root$libdir/libtickless.a"
install -m 755 "$built/libtickless_capi.so" "$root$libdir/libtickless.so.$version"
ln -sf "libtickless.so.$version" "$root$libdir/$soname"
ln -sf "$soname" "$root$libdir/libtickless.so"

cat >"$root$libdir/pkgconfig/tickless.pc" <<PC
prefix=$prefix
libdir=$libdir
includedir=\${prefix}/include

Name: tickless
Description: Linux's timer subsystem for programs
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -ltickless
Libs.private: -lgcc_s -lpthread -lm -ldl
PC
echo "installed tickless $version below ${root}$prefix"
