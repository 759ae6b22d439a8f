# What the scripts of this folder share: a temporary folder, and programs made of pinned packages.
# No code of this repository is built or run. Sourced, never run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"

# rust DEPENDENCY...: runs the program on standard input, with lines for Cargo.toml.
rust() {
  {
    printf '[package]\nname = "finding"\nversion = "0.0.0"\nedition = "2024"\n'
    printf '[workspace]\n[dependencies]\n'
    printf '%s\n' "$@"
  } >"$work/Cargo.toml"
  cat >"$work/src/main.rs"
  CARGO_TARGET_DIR=$work/target cargo run -q --manifest-path "$work/Cargo.toml" >"$work/seen"
}

# python REQUIREMENT...: runs the program on standard input.
python() {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check "$@"
  "$work/venv/bin/python" - >"$work/seen"
}

# golang MODULE@VERSION...: runs the program on standard input.
golang() {
  cat >"$work/src/main.go"
  (
    cd "$work/src" && go mod init -q finding 2>/dev/null || go mod init finding 2>/dev/null
    go get "$@" 2>/dev/null && go run . >"$work/seen"
  )
}

# node PACKAGE@VERSION...: runs the module on standard input.
node() {
  cat >"$work/src/main.mjs"
  (
    cd "$work/src" && npm install --silent --no-fund --no-audit "$@" >/dev/null
    command node main.mjs >"$work/seen"
  )
}

# java GROUP:ARTIFACT:VERSION...: runs the first class on standard input.
java() {
  local group artifact version
  cat >"$work/src/Main.java"
  {
    printf '<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId>\n'
    printf '<artifactId>finding</artifactId><version>0</version><dependencies>\n'
    while IFS=: read -r group artifact version; do
      printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId>' "$group" "$artifact"
      printf '<version>%s</version></dependency>\n' "$version"
    done < <(printf '%s\n' "$@")
    printf '</dependencies></project>\n'
  } >"$work/pom.xml"
  mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" \
    >"$work/errors" 2>&1 || { cat "$work/errors" >&2 && return 1; }
  command java -cp "$work/jars/*" "$work/src/Main.java" >"$work/seen"
}

# who: groups the lines `case|answer|program` of $work/all by the answers, with who gives each.
who() {
  awk -F'|' '{ key = $1 ": " $2 } !(key in who) { keys[++n] = key }
    { who[key] = who[key] ", " $3 }
    END { for (i = 1; i <= n; i++) print keys[i] ":" substr(who[keys[i]], 2) }' "$work/all" |
    LC_ALL=C sort | fold -sw 96 | sed 's/ $//' >"$work/seen"
}

# debian PACKAGE=VERSION...: unpacks packages, and lets programs find their libraries.
debian() {
  local root=$work/root package
  mkdir -p "$root" "$work/deb" && chmod 755 "$work" "$work/deb"
  (cd "$work/deb" && apt-get download -qq "$@" 2>"$work/errors") ||
    { cat "$work/errors" >&2 && return 1; }
  for package in "$work"/deb/*.deb; do dpkg -x "$package" "$root"; done
  export LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu PATH=$root/usr/bin:$PATH
}

# clock_back: builds back.so. A program that it is preloaded to sees the wall clock go back by an
# hour once the file $BACK exists; the monotonic clock and the kernel's waits stay as they are.
clock_back() {
  cc -shared -fPIC -O1 -x c -o "$work/back.so" - <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  int result = real(clock, now);
  if (wall && access(getenv("BACK"), F_OK) == 0) now->tv_sec -= 3600;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
C
}

# Compares what was seen with standard input.
seen() {
  cat "$work/seen"
  diff "$work/seen" -
}
