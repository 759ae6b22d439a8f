#!/usr/bin/env bash
# Builds the C library and installs it with its headers, its pkg-config and CMake files, and its
# licences. Strips symbols that linking does not need; STRIP= keeps them.
# Usage: [PREFIX=/usr/local] [LIBDIR=$PREFIX/lib] [DESTDIR=] [PROFILE=release] [STRIP=strip] \
#   install.sh
# The soname is libtickless.so.MAJOR.MINOR while MAJOR is 0, because a minor version may then break
# programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
root=${DESTDIR:-}
profile=${PROFILE:-release}
strip=${STRIP-strip}

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
if [ -n "$strip" ]; then
  "$strip" --strip-unneeded "$root$libdir/libtickless.so.$version"
  "$strip" --strip-debug "$root$libdir/libtickless.a"
fi
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
licences=$root$prefix/share/doc/tickless
install -d "$licences"
install -m 644 LICENSE-APACHE LICENSE-MIT "$licences"

# The CMake package finds the files relative to itself, so that the prefix can be moved.
cmake=$libdir/cmake/tickless
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
  INTERFACE_LINK_LIBRARIES "gcc_s;pthread;m;dl"
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
echo "installed tickless $version below ${root}$prefix"
