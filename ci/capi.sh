#!/usr/bin/env bash
# Builds and installs the C library, and builds the C and C++ tests and examples against the
# installed library as a user would: by pkg-config, with warnings as errors. Runs each of them with
# the static and the shared library, under AddressSanitizer with UBSan, and under valgrind. Then
# checks that a leak, an overflow and an outdated header are detected. The tests in Rust that
# `cargo test` leaves to this script run first.
. "$(dirname "$0")/lib.sh"
cargo test --locked -q -p tickless-capi

here=timers/tickless-capi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of the debug information only the lines, which reports name: all of it takes a fifth of the time.
warnings=(-Wall -Wextra -Werror -pedantic -Wconversion -Wshadow -g1 -O1)
# Without optimisation, a program with Asio takes 8 s of CPU to compile with them, not 14.
sanitizers=(-O0 -fsanitize=address,undefined -fno-sanitize-recover=all)

fail() { echo "$1" >&2 && exit 1; }

for tool in gcc g++ pkg-config; do
  if ! command -v "$tool" >/dev/null; then
    skip capi "there is no $tool"
    exit 0
  fi
done

# Installs missing packages from Debian if it may.
have_valgrind() { command -v valgrind >/dev/null; }
have_cmake() { command -v cmake >/dev/null; }
have_libuv() { pkg-config --exists libuv; }
have_libev() { [ -e /usr/include/ev.h ]; }
have_libevent() { pkg-config --exists libevent; }
have_boost() { [ -e /usr/include/boost/asio.hpp ]; }
have_asio() { [ -e /usr/include/asio.hpp ]; }
have_loops() { have_libuv && have_libev && have_libevent && have_boost && have_asio; }
have_all() { have_valgrind && have_cmake && have_loops; }
have_all ||
  install_packages valgrind cmake libuv1-dev libev-dev libevent-dev libboost-dev libasio-dev

"$here/install.sh" --help | grep -q -- --uninstall || fail "install.sh does not list its options"
for wrong in --prefx=/usr help --prefix "--prefix relative"; do
  # shellcheck disable=SC2086 # two words
  ! "$here/install.sh" $wrong >/dev/null 2>&1 || fail "install.sh accepts $wrong"
done
"$here/install.sh" --profile dev --prefix "$work/usr"
export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig LD_LIBRARY_PATH=$work/usr/lib
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$(pkg-config --modversion tickless)" = "$version" ] || fail "pkg-config reports another version"

library=$work/usr/lib/libtickless.so
declared=$(grep -o '\btickless_[a-z_]*(' "$here/include/tickless.h" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sort -u)
diff <(echo "$exported") <(echo "$declared") || fail "exported and declared functions differ"
# Each has a manual page, and tickless(3) names all; a function's page says what it returns or does.
pages=$work/usr/share/man/man3
documented=$(cd "$pages" && ls tickless_*.3)
diff <(echo "${documented//.3/}") <(echo "$declared") || fail "not every function has a page"
diff <(sed -n 's/^\.BR \(.*\) (3)$/\1/p' "$pages/tickless.3" | sort) <(echo "$declared") ||
  fail "tickless(3) does not list all functions"
for page in "$pages"/*.3; do
  [ "$(awk '/^\.SH DESCRIPTION/ { on = 1; next } /^\.SH/ { on = 0 } on' "$page" | wc -w)" -gt 3 ] ||
    fail "$page describes nothing"
  types='tickless_[a-z_]*\(callback\|options\|stats\|counts\|quota\|arming\|cancel\)_t'
  for type in $(sed '/^\.SH DESCRIPTION/q' "$page" | grep -o "$types" | sort -u); do
    sed '1,/^\.SH TYPES/d' "$page" | grep "^typedef.*$type" >/dev/null ||
      fail "$page lacks $type"
  done
  command -v groff >/dev/null || continue
  [ -z "$(groff -man -ww -z "$page" 2>&1)" ] || fail "$page has faults"
done
grep -q '^\.B TICKLESS_PUSH_OUT_EAGER' "$pages/tickless_local_create.3" ||
  fail "the constants that end with dots are not listed"
for status in $(sed -n 's/^  \(TICKLESS_[A-Z_]*\) = [0-9]*,$/\1/p' "$here/include/tickless.h"); do
  grep -q "^  $status = " "$pages"/tickless{,_timer_cancel}.3 || fail "no page explains $status"
done
# The C++ header uses every function. TICKLESS_ABI_CHECK() calls the one that it does not name.
wrapped=$(grep -o '\btickless_[a-z_]*\b' "$here/include/tickless.hpp" | sort -u)
cmp "$here/include/tickless/asio.hpp" "$work/usr/include/tickless/asio.hpp" || fail "no asio.hpp"
unused=$(comm -23 <(echo "$declared") <(echo "$wrapped") | grep -v '^tickless_abi_check$' || true)
[ -z "$unused" ] || fail "tickless.hpp does not use $unused"
readelf -d "$library" | grep "SONAME.*libtickless.so.${version%.*}]" >/dev/null || fail "no soname"

read -ra cflags <<<"$(pkg-config --cflags tickless)"
read -ra shared <<<"$(pkg-config --libs tickless)"
read -ra private <<<"$(pkg-config --static --libs tickless | sed 's/-ltickless//')"
# Names the archive: with -ltickless the linker would use the shared library.
static=("$work/usr/lib/libtickless.a" "${private[@]}")

for licence in LICENSE-APACHE LICENSE-MIT; do
  cmp "$work/usr/share/doc/tickless/$licence" "$here/$licence" || fail "no $licence"
done
! readelf -S "$library" | grep '\.debug_info' >/dev/null || fail "the library is not stripped"

# compile SOURCE OUTPUT FLAGS...: compiles a C11 or C++17 program, or one with Asio and coroutines.
compile() {
  local source=$1 output=$2
  shift 2
  case $source in
    */no_exceptions.cpp)
      g++ -std=c++17 -fno-exceptions "${warnings[@]}" "${cflags[@]}" "$source" -o "$output" "$@" ;;
    */asio*.cpp) g++ -std=c++20 "${warnings[@]}" "${cflags[@]}" "$source" -o "$output" "$@" ;;
    *.cpp) g++ -std=c++17 "${warnings[@]}" "${cflags[@]}" "$source" -o "$output" "$@" ;;
    *) gcc -std=c11 "${warnings[@]}" "${cflags[@]}" "$source" -o "$output" "$@" ;;
  esac
}

# run NAME WAY COMMAND...: runs the command, and prints its output only if it fails.
run() {
  local name=$1 way=$2
  shift 2
  timeout 300 "$@" >"$work/log" 2>&1 ||
    { echo "$name FAILED ($way, status $?):" >&2; cat "$work/log" >&2; return 1; }
}

memcheck=(valgrind -q --error-exitcode=9 --leak-check=full --fair-sched=try
  --errors-for-leak-kinds=definite,possible --child-silent-after-fork=yes)

build_all() {
  local source=$1 program=$2 linker=gcc
  shift 2
  [[ $source != *.cpp ]] || linker=g++
  compile "$source" "$program.o" -c
  "$linker" "$program.o" -o "$program-static" "${static[@]}" "$@"
  "$linker" "$program.o" -o "$program-shared" "${shared[@]}" "$@"
  compile "$source" "$program-asan" "${sanitizers[@]}" "${static[@]}" "$@"
}

run_all() {
  local name=$1 program=$2
  shift 2
  run "$name" static "$program-static" "$@"
  run "$name" shared "$program-shared" "$@"
  if [[ $name = tests/c/fork* ]]; then
    # The child does not free the memory of its parent's threads, which a leak check would report.
    # There is no run with sanitizers: another thread may hold the lock of their allocator at the
    # fork, which hangs the child.
    ! have_valgrind || run "$name" valgrind "${memcheck[@]}" --leak-check=no "$program-static"
    return
  fi
  run "$name" sanitizers "$program-asan" "$@"
  ! have_valgrind || run "$name" valgrind "${memcheck[@]}" "$program-static" "$@"
}

# Builds a program with one of the two Asios, without a static variant: each build takes 20 s.
with_asio() {
  local source=$1 which=$2 flags=() program
  [ "$which" = boost ] || flags=(-DASIO_STANDALONE)
  "have_$which" || { skip "$source" "there is no $which, and it cannot be installed"; return; }
  program=$work/$(basename "$source")-$which
  compile "$source" "$program" "${flags[@]}" "${shared[@]}"
  run "$source" "$which" "$program"
  case $source in */examples/*) return ;; esac
  ! have_valgrind || run "$source" "$which, valgrind" "${memcheck[@]}" "$program"
  # With sanitizers, gcc 12 warns of the promise in Boost 1.74's use_future, without a reason.
  flags+=(-Wno-maybe-uninitialized)
  compile "$source" "$program-asan" "${flags[@]}" "${sanitizers[@]}" "${static[@]}"
  run "$source" "$which, sanitizers" "$program-asan"
}

one() {
  local source=$1 name program seed loop=()
  name=${source#"$here"/}
  program=$work/${name//\//-}
  case $name in
    examples/libuv_*)
      have_libuv || { skip "$name" "there is no libuv, and it cannot be installed"; return; }
      read -ra loop <<<"$(pkg-config --libs libuv)" ;;
    examples/libev_*)
      have_libev || { skip "$name" "there is no libev, and it cannot be installed"; return; }
      loop=(-lev) ;;
    examples/libevent_*)
      have_libevent || { skip "$name" "there is no libevent, and it cannot be installed"; return; }
      read -ra loop <<<"$(pkg-config --libs libevent)" ;;
    */asio*)
      with_asio "$source" boost
      with_asio "$source" asio
      echo "$name: ok"
      return ;;
  esac
  build_all "$source" "$program" "${loop[@]}"
  case $name in
    examples/echo_server.c) run_all "$name" "$program" --self-test ;;
    tests/c/attack.c)
      seed=$(cksum <<<"${TICKLESS_RUN:-}" | cut -d' ' -f1)
      run_all "$name" "$program" 500 "$seed"
      run "$name" forks "$program-static" 500 "$seed" forks ;;
    *) run_all "$name" "$program" ;;
  esac
  echo "$name: ok"
}

have_valgrind || skip "valgrind of the C tests" "there is no valgrind, and it cannot be installed"

# Runs two at a time, because the programs mostly wait while compilers use the CPU.
jobs=()
for source in "$here"/tests/c/*.{c,cpp} "$here"/examples/*.{c,cpp}; do
  one "$source" &
  jobs+=($!)
  if [ ${#jobs[@]} -ge 2 ]; then
    wait "${jobs[0]}"
    jobs=("${jobs[@]:1}")
  fi
done
for job in "${jobs[@]}"; do wait "$job"; done

# A program that needs no shared library at all.
read -ra all_static <<<"$(pkg-config --static --cflags --libs tickless)"
alone=$work/no-shared
gcc -static "$here/examples/basic_timeout.c" -o "$alone" "${all_static[@]}" 2>"$work/log" ||
  { cat "$work/log" >&2; fail "gcc -static fails with what pkg-config says"; }
! readelf -d "$alone" | grep NEEDED || fail "a static program needs a shared library"
run basic_timeout.c "gcc -static" "$alone"

# A project that finds the library by CMake, links the shared and the static one, and requires a
# version.
if have_cmake; then
  mkdir "$work/project"
  cat >"$work/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(stranger C)
find_package(tickless ${version%.*} REQUIRED CONFIG)
foreach(sort tickless static)
  add_executable(basic-\${sort} $PWD/$here/examples/basic_timeout.c)
  target_link_libraries(basic-\${sort} tickless::\${sort})
endforeach()
find_package(tickless 99 QUIET CONFIG)
if(tickless_FOUND)
  message(FATAL_ERROR "CMake found a version that is not installed")
endif()
CMAKE
  run cmake configure cmake -S "$work/project" -B "$work/built" -DCMAKE_PREFIX_PATH="$work/usr"
  run cmake build cmake --build "$work/built"
  run cmake shared "$work/built/basic-tickless"
  run cmake static "$work/built/basic-static"
  echo "cmake: ok"
else
  skip "the CMake package" "there is no cmake, and it cannot be installed"
fi

# fails WHAT COMMAND...: checks that the command fails.
fails() {
  local what=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "$what is not detected" >&2
    return 1
  fi
  echo "$what: detected"
}

for broken in leak use_after_free overflow; do
  build_all "$here/tests/c/broken/$broken.c" "$work/$broken"
done
run leak static "$work/leak-static"
fails "a leak (sanitizers)" "$work/leak-asan"
fails "a use after free (sanitizers)" "$work/use_after_free-asan"
if have_valgrind; then
  fails "a leak (valgrind)" "${memcheck[@]}" "$work/leak-static"
  fails "a use after free (valgrind)" "${memcheck[@]}" "$work/use_after_free-static"
  # The library is built without sanitizers, so only valgrind checks its writes.
  fails "storage that is too small (valgrind)" "${memcheck[@]}" "$work/overflow-static"
fi

# ThreadSanitizer: the library is not instrumented, and annotates what it orders. A real race is
# still reported.
tsan=(-fsanitize=thread)
export TSAN_OPTIONS=ignore_noninstrumented_modules=1
echo 'int main(void) {}' >"$work/empty.c"
if gcc "$work/empty.c" -o "$work/empty" "${tsan[@]}" 2>/dev/null && "$work/empty"; then
  for source in timers.c periodic.c threads.c quota.c attack.c cpp.cpp; do
    compile "$here/tests/c/$source" "$work/tsan" "${tsan[@]}" "${shared[@]}"
    run "$source" ThreadSanitizer "$work/tsan"
  done
  compile "$here/tests/c/broken/race.c" "$work/race" "${tsan[@]}" "${shared[@]}"
  fails "a race (ThreadSanitizer)" "$work/race"
else
  skip "ThreadSanitizer of the C tests" "gcc has none here, or it does not run on this kernel"
fi

# A program that is compiled with another version's header is refused.
mkdir "$work/other"
sed 's/opaque\[16\]/opaque[15]/' "$work/usr/include/tickless.h" >"$work/other/tickless.h"
basic=$here/examples/basic_timeout.c
cflags=(-I"$work/other" "${cflags[@]}")
fails "storage of another size (compiler)" compile "$basic" "$work/outdated" "${static[@]}"
sed -i 's/sizeof(tickless_timer_t) == 128 && //' "$work/other/tickless.h"
compile "$basic" "$work/outdated" "${static[@]}"
fails "storage of another size (at run time)" "$work/outdated"
grep -q "with the library's own header" "$work/log"

# Nothing is left but the folders that other packages share.
"$here/install.sh" --uninstall --prefix "$work/usr"
left=$(find "$work/usr" ! -type d -o -name 'tickless*')
[ -z "$left" ] || fail "install.sh --uninstall leaves $left"
