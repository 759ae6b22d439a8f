#!/usr/bin/env bash
# Breaks the code on purpose, one place at a time, and checks that the named test fails. The lists
# ci/mutations/*.list cover orderings and protocols between threads; ci/mutants.sh breaks pure code.
# Usage: ci/mutations.sh [WORD]...   Only mutations whose list or title contains one of the words.
#        ci/mutations.sh --check     Only checks that places and tests still exist (in the gate).
#
# An entry is a title, a file, lines of it (`-` is removed, `+` is inserted, ` ` stays; the lines
# must occur exactly once, ignoring indentation), and the test that must fail:
#     # title
#     @ timers/tickless-core/src/bases/running.rs
#     - self.timer(runner).store(0, Ordering::Release);
#     + self.timer(runner).store(0, Ordering::Relaxed);
#     ? tickless-models models_loom cancelling::watching_against_fire
# `?` takes a package, a test binary or `lib`, a part of the test's name, and optionally `deep`, for
# a model that must be explored as ci/models.sh does. A test that takes more than two minutes hangs,
# as it must where a wakeup is lost; on a busy machine it may only be slow: run its entry again.
# Instead of `?`, `=` gives the reason why no test can fail, and `!` the reason why none fails yet:
# such an entry is listed and not run.
. "$(dirname "$0")/lib.sh"

is_check=''
if [ "${1:-}" = --check ]; then
  is_check=yes
  shift
fi

root=$PWD
tree=$root/target/mutations/tree
export CARGO_TARGET_DIR=$root/target/mutations/target
log=$root/target/mutations/log
if [ ! "$is_check" ]; then
  rm -rf "$tree"
  mkdir -p "$tree"
  git ls-files -z | xargs -0 tar c | tar x -C "$tree"
  cd "$tree"
fi

# Prints the file $1 with the lines of entry $2 changed; fails unless they occur exactly once.
mutate() {
  awk '
    function trim(text) { sub(/^[ \t]+/, "", text); sub(/[ \t]+$/, "", text); return text }
    NR == FNR && /^[-+ ]/ {
      kind = substr($0, 1, 1); text = trim(substr($0, 2))
      if (kind != "+") old[++olds] = text
      if (kind != "-") new[++news] = text
      next
    }
    NR == FNR { next }
    { line[++lines] = $0 }
    END {
      for (at = 1; at + olds - 1 <= lines; at++) {
        for (i = 1; i <= olds && trim(line[at + i - 1]) == old[i]; i++);
        if (i > olds) { found++; first = at }
      }
      if (found != 1) exit 1
      for (at = 1; at < first; at++) print line[at]
      for (i = 1; i <= news; i++) print new[i]
      for (at = first + olds; at <= lines; at++) print line[at]
    }' "$2" "$1"
}

# Runs the named test and prints its result.
verdict() {
  local filter=$3 depth=$4 test=(cargo test --locked -q -p "$1" --test "$2")
  [ "$2" = lib ] && test=(cargo test --locked -q -p "$1" --lib)
  # Models take long to compile and run fast.
  [[ $2 == models_* ]] && test+=(--config profile.dev.opt-level=0 --config profile.dev.debug=0
    --config 'profile.dev.package."*".opt-level=1')
  "${test[@]}" --no-run >"$log" 2>&1 || { echo "DOES NOT BUILD"; return; }
  local status=0
  TICKLESS_MODELS=$depth timeout 120 "${test[@]}" -- "$filter" >"$log" 2>&1 || status=$?
  if [ $status -eq 124 ]; then
    echo hung
  elif [ $status -ne 0 ]; then
    echo caught
  elif grep -q 'test result: ok. [1-9]' "$log"; then
    echo "NOT CAUGHT"
  else
    echo "NO SUCH TEST"
  fi
}

wanted() {
  [ $# -gt 1 ] || return 0
  local text=$1 word
  shift
  for word in "$@"; do [[ $text == *"$word"* ]] && return 0; done
  return 1
}

# Runs the entry in the file $entry.
run_entry() {
  local title=$1 file=$2 package=$3 target=$4 filter=$5 depth=$6 result
  if ! mutate "$file" "$entry" >"$mutant"; then
    result="NOT FOUND, or more than once; correct its entry"
  elif [ "$is_check" ]; then
    git grep -qF "${filter##*::}" -- '*.rs' && return 0
    result="NO SUCH TEST"
  else
    cp "$file" "$original"
    cat "$mutant" >"$file"
    result=$(verdict "$package" "$target" "$filter" "$depth")
    cp "$original" "$file"
    touch "$file"
  fi
  printf '%-14s %s (%s, %s)\n' "$result" "$title" "$target" "$filter"
  [ "$result" != hung ] || hung=$((hung + 1))
  [[ $result == @(caught|hung) ]]
}

entry=$(mktemp) mutant=$(mktemp) original=$(mktemp)
trap 'rm -f "$entry" "$mutant" "$original"' EXIT
caught=0 hung=0 equal=0 open=0 missed=0
for list in "$root"/ci/mutations/*.list; do
  title='' file=''
  while IFS= read -r line <&3; do
    case $line in
      '# '*) title=${line#\# } && : >"$entry" ;;
      '@ '*) file=${line#@ } ;;
      [-+\ ]*) printf '%s\n' "$line" >>"$entry" ;;
      '= '*)
        wanted "$(basename "$list") $title" "$@" || continue
        printf '%-14s %s: %s\n' "equivalent" "$title" "${line#= }"
        equal=$((equal + 1))
        ;;
      '! '*)
        wanted "$(basename "$list") $title" "$@" || continue
        printf '%-14s %s: %s\n' "not caught yet" "$title" "${line#! }"
        open=$((open + 1))
        ;;
      '? '*)
        wanted "$(basename "$list") $title" "$@" || continue
        read -r package target filter depth <<<"${line#? }"
        if run_entry "$title" "$file" "$package" "$target" "$filter" "$depth"; then
          caught=$((caught + 1))
        else
          missed=$((missed + 1))
        fi
        ;;
    esac
  done 3<"$list"
done
echo "$caught caught ($hung of them hung), $missed missed, $open not caught yet, $equal equivalent"
[ "$missed" -eq 0 ]
