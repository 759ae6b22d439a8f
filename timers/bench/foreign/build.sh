#!/usr/bin/env bash
# Builds the peers in other languages into the folder $1: a program for each, or a file
# NAME.missing with the reason why there is none. timers/bench/src/peers/foreign.rs runs them.
# Needs, and names if they are missing: g++ and pkg-config with libev-dev, libevent-dev,
# libboost-dev and libdpdk-dev; Go 1.22 or later; a JDK 17 or later with Maven, which fetches jars.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
: >"$out/versions"

# Runs a command that makes the program $1, and notes why it did not.
build() {
  local name=$1 log=$out/$1.log
  shift
  rm -f "$out/$name" "$out/$name.missing"
  if ! "$@" >"$log" 2>&1; then
    rm -f "$out/$name"
    grep -m1 -iE 'error|not found|cannot|no such' "$log" >"$out/$name.missing" ||
      echo "it does not build; see $log" >"$out/$name.missing"
    # The reason stands in the page, which knows no folders of this machine.
    sed -i "s#${here%timers/bench/foreign}##g" "$out/$name.missing"
    echo "not built: $name: $(cat "$out/$name.missing")" >&2
    return 1
  fi
  rm -f "$log"
}

version() { echo "$*" >>"$out/versions"; }

cpp() {
  local name=$1 source=$2
  shift 2
  build "$name" g++ -std=c++17 -O2 -pthread "$here/cpp/$source.cpp" -o "$out/$name" "$@"
}

macro() { # HEADER EXPRESSION: what the preprocessor makes of it
  echo "$2" | g++ -E -P -include "$1" -x c++ - 2>/dev/null | tail -1 | tr -d '" '
}

# Tickless itself, as a program in C installs and links it.
from_c() {
  "$here/../../tickless-capi/install.sh" --prefix "$out/usr" &&
    g++ -std=c++17 -O2 -pthread -I"$out/usr/include" "$here/cpp/$1.cpp" -o "$out/$1" \
      "$out/usr/lib/libtickless.a" -lm -ldl
}
build tickless from_c tickless || true
build tickless_local from_c tickless_local || true
cpp libev libev -lev && version "libev $(macro ev.h 'EV_VERSION_MAJOR.EV_VERSION_MINOR')" || true
cpp libevent libevent -levent -levent_pthreads &&
  version "libevent $(pkg-config --modversion libevent)" || true
cpp libevent_common libevent -DCOMMON_TIMEOUT -levent -levent_pthreads || true
cpp asio asio && version "Boost $(macro boost/version.hpp BOOST_LIB_VERSION | tr _ .)" || true
# shellcheck disable=SC2046 # its flags are words
cpp dpdk dpdk $(pkg-config --cflags libdpdk 2>/dev/null) -lrte_eal -lrte_timer &&
  version "DPDK $(pkg-config --modversion libdpdk)" || true

go_program() { (cd "$here/go" && GOFLAGS=-mod=mod go build -o "$out/go" .); }
build go go_program && version "$(go version | cut -d' ' -f3 | sed 's/^go/Go /')" || true

java_programs() {
  timeout 600 mvn -q -B -f "$here/java/pom.xml" -Dout="$out/java" process-classes
}

# A program that starts the one that was compiled.
java_peer() {
  rm -f "$out/$1" "$out/$1.missing"
  if [ -e "$out/java.missing" ]; then
    cp "$out/java.missing" "$out/$1.missing"
    return
  fi
  printf '#!/bin/sh\nexec java -Xms1g -Xmx4g -cp "%s" Bench %s "$@"\n' \
    "$out/java/classes:$out/java/jars/*" "$1" >"$out/$1"
  chmod +x "$out/$1"
}

rm -rf "$out/java"
if build java java_programs; then
  for jar in "$out"/java/jars/*.jar; do
    version "$(basename "$jar" .jar |
      sed -E 's/-([0-9])/ \1/; s/netty-common/Netty/; s/agrona/Agrona/')"
  done
  version "$(java -version 2>&1 | sed -nE '1s/.*"(.*)".*/Java \1/p')"
fi
java_peer netty
java_peer agrona
