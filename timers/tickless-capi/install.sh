#!/usr/bin/env bash
# Builds and installs the C library; --help lists the options.
# The soname is libtickless.so.MAJOR.MINOR while MAJOR is 0, because a minor version may then break
# programs.
set -euo pipefail

usage() {
  cat <<'USAGE'
Builds the C library and installs it with its headers, manual pages, pkg-config and CMake files, and
licences. Needs Rust and a C compiler.

Usage: install.sh [OPTION]...

  --prefix DIR     install below DIR [/usr/local]
  --libdir DIR     install the libraries into DIR [PREFIX/lib]
  --destdir DIR    put everything below DIR, for packagers; the files name PREFIX
  --profile NAME   build with this profile of cargo [release]
  --no-strip       keep symbols that linking does not need
  --uninstall      remove what an installation with these options has installed
  --help           print this

The variables PREFIX, LIBDIR, DESTDIR and PROFILE are defaults of the options.
USAGE
}

fail() { echo "install.sh: $1" >&2 && exit 2; }

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-}
root=${DESTDIR:-}
profile=${PROFILE:-release}
strip=strip
uninstall=
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage && exit ;;
    --no-strip) strip= ;;
    --uninstall) uninstall=1 ;;
    --prefix | --libdir | --destdir | --profile)
      [ -n "${2:-}" ] || fail "$1 needs a value"
      case $1 in
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        --destdir) root=$2 ;;
        --profile) profile=$2 ;;
      esac
      shift ;;
    *) fail "there is no option $1; --help lists the options" ;;
  esac
  shift
done
for folder in "$prefix" "${libdir:=$prefix/lib}"; do
  case $folder in
    /*) ;;
    *) fail "$folder is not an absolute path" ;;
  esac
done
licences=$root$prefix/share/doc/tickless
manual=$root$prefix/share/man/man3
cmake=$libdir/cmake/tickless

cd "$(dirname "${BASH_SOURCE[0]}")"
version=$(cat Cargo.toml ../../Cargo.toml 2>/dev/null |
  sed -n '/^version = "/ { s/^version = "\(.*\)"/\1/p; q }')
IFS=. read -r major minor _ <<<"$version"
soname=libtickless.so.$major
[ "$major" -gt 0 ] || soname=$soname.$minor

if [ -n "$uninstall" ]; then
  rm -f "$root$prefix"/include/{tickless.{h,hpp},tickless/asio.hpp} \
    "$licences"/LICENSE-{APACHE,MIT} \
    "$root$libdir"/{libtickless.a,libtickless.so,"$soname","libtickless.so.$version"} \
    "$root$libdir/pkgconfig/tickless.pc" "$root$cmake"/tickless-config{,-version}.cmake
  rm -f "$manual"/tickless{,_*}.3
  for folder in "$licences" "$root$cmake" "$root$prefix/include/tickless"; do
    [ ! -d "$folder" ] || rmdir --ignore-fail-on-non-empty "$folder"
  done
  echo "removed tickless $version below $root$prefix"
  exit
fi

command -v cargo >/dev/null || fail "there is no cargo; install Rust, for example from rustup.rs"
cargo build --locked --lib --profile "$profile"
target=$(cargo metadata --no-deps --format-version 1)
target=$(sed 's/.*"target_directory":"\([^"]*\)".*/\1/' <<<"$target")
[ "$profile" = dev ] && built=$target/debug || built=$target/$profile

install -d "$root$libdir/pkgconfig" "$root$prefix/include/tickless"
install -m 644 include/tickless.h include/tickless.hpp "$root$prefix/include"
install -m 644 include/tickless/asio.hpp "$root$prefix/include/tickless"
install -m 644 "$built/libtickless_capi.a" "$root$libdir/libtickless.a"
install -m 755 "$built/libtickless_capi.so" "$root$libdir/libtickless.so.$version"
if [ -n "$strip" ]; then
  "$strip" --strip-unneeded "$root$libdir/libtickless.so.$version"
  "$strip" --strip-debug "$root$libdir/libtickless.a"
fi
./man.sh "$manual" >/dev/null
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
Libs.private: -lpthread -lm -ldl
PC
install -d "$licences"
install -m 644 LICENSE-APACHE LICENSE-MIT "$licences"

# The CMake package finds the files relative to itself, so that the prefix can be moved.
install -d "$root$cmake"
up=$(realpath -m --relative-to "$cmake" "$libdir")
include=$(realpath -m --relative-to "$cmake" "$prefix/include")
cat >"$root$cmake/tickless-config.cmake" <<CMAKE
# tickless::tickless is the shared library, tickless::static the static one.
if(TARGET tickless::tickless)
  return()
endif()
get_filename_component(_tickless_lib "\${CMAKE_CURRENT_LIST_DIR}/$up" ABSOLUTE)
get_filename_component(_tickless_include "\${CMAKE_CURRENT_LIST_DIR}/$include" ABSOLUTE)
add_library(tickless::tickless SHARED IMPORTED)
set_target_properties(tickless::tickless PROPERTIES
  IMPORTED_LOCATION "\${_tickless_lib}/libtickless.so.$version"
  IMPORTED_SONAME "$soname"
  INTERFACE_INCLUDE_DIRECTORIES "\${_tickless_include}")
add_library(tickless::static STATIC IMPORTED)
set_target_properties(tickless::static PROPERTIES
  IMPORTED_LOCATION "\${_tickless_lib}/libtickless.a"
  INTERFACE_LINK_LIBRARIES "pthread;m;dl"
  INTERFACE_INCLUDE_DIRECTORIES "\${_tickless_include}")
unset(_tickless_lib)
unset(_tickless_include)
CMAKE
# Before 1.0, every minor version may break programs.
cat >"$root$cmake/tickless-config-version.cmake" <<CMAKE
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER "$version")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif("\${PACKAGE_FIND_VERSION_MAJOR}" STREQUAL "$major" AND
       (NOT "$major" STREQUAL "0" OR "\${PACKAGE_FIND_VERSION_MINOR}" STREQUAL "$minor"))
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION STREQUAL "$version")
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
CMAKE
echo "installed tickless $version below $root$prefix"
[ -n "$root" ] ||
  echo "if programs do not find $soname: run ldconfig, or link with -Wl,-rpath,$libdir"
