#!/usr/bin/env bash
# Makes a quick report and the pages of `quota` and `warp`, and opens them in headless Chromium:
# light, dark and 390 pixels wide, the report printed, too. Fails if the browser logs a message, if
# a page makes a request, if it is wider than 390 or 1280 pixels in a frame of that width, if a text
# of a picture is outside of the picture or upon another one, or if a study is missing. Then breaks
# the report in each of these ways and checks that it fails.
# Usage: ci/report.sh [FOLDER]   Leaves the pages and their screenshots in FOLDER.
. "$(dirname "$0")/lib.sh"

find_chromium() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" && return 0
  done
  return 1
}

if ! browser=$(find_chromium); then
  install_packages chromium
  browser=$(find_chromium) || true
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${1:-$work/out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
tickless() { cargo run --locked --release -q -p tickless-cli -- "$@"; }
tickless report --quick --out "$out"
# Eight lines in each plot.
tickless quota traces/bursts.txt.gz --cpus 1,2 --period 20ms,100ms --burst 0,50 \
  --html "$out/quota.html" >/dev/null
tickless warp --html "$out/warp.html" -- sh -c 'sleep 60; sleep 5 & sleep 7; wait' 2>/dev/null
if [ -z "$browser" ]; then
  skip report "no Chromium, and it could not be installed; the pages were made but not opened"
  exit 0
fi

# Runs the browser without network on the file $1, with the further arguments. Writes the page's
# console messages, including refused requests, to $work/console.
browse() {
  local file=$1 flags=(--headless=new --disable-gpu --hide-scrollbars --no-first-run
    --user-data-dir="$work/profile" --host-resolver-rules='MAP * ~NOTFOUND'
    --enable-logging=stderr --virtual-time-budget=4000)
  shift
  [ "$(id -u)" = 0 ] && flags+=(--no-sandbox)
  timeout 120 "$browser" "${flags[@]}" "$@" "file://$file" 2>"$work/log" || {
    cat "$work/log" >&2
    echo "$browser failed on $file" >&2
    return 1
  }
  grep 'CONSOLE' "$work/log" >"$work/console" || true
}

# Makes a page that shows a copy of the page $1 in a frame of $2 pixels, with all details open, and
# records its width and the faults of its pictures. Only the copy may run a script; the page itself
# may not.
in_frame() {
  sed -e 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' \
    -e 's/<details>/<details open>/g' "$1" >"$work/copy.html"
  cat >>"$work/copy.html" <<'END'
<script>addEventListener("load", () => {
  const faults = []
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")]
      .map((it) => [it.textContent, it.getBoundingClientRect()])
    const picture = svg.getBoundingClientRect()
    texts.forEach(([text, at], place) => {
      const inside = at.left >= picture.left - 1 && at.right <= picture.right + 1 &&
        at.top >= picture.top - 1 && at.bottom <= picture.bottom + 1
      if (!inside) faults.push(text + " is outside of its picture")
      for (const [other, by] of texts.slice(0, place))
        if (Math.min(at.right, by.right) - Math.max(at.left, by.left) > 1 &&
            Math.min(at.bottom, by.bottom) - Math.max(at.top, by.top) > at.height / 4)
          faults.push(text + " is upon " + other)
    })
  }
  parent.postMessage([document.documentElement.scrollWidth, faults], "*")
})</script>
END
  cat >"$work/frame.html" <<END
<!DOCTYPE html><html><body style="margin:0">
<script>addEventListener("message", (e) => {
  document.body.dataset.wide = e.data[0]
  document.body.dataset.faults = e.data[1].join("; ")
})</script>
<iframe src="copy.html" width="$2" height="3000" style="border:0"></iframe></body></html>
END
}

# Checks the page $1. The names of its screenshots begin with $2. The page has the other arguments
# as sections.
check() {
  local page=$1 pictures=$2 section frame wide faults
  shift 2
  browse "$page" --window-size=1400,6600 --screenshot="$pictures-light.png" || return 1
  if [ -s "$work/console" ]; then
    cat "$work/console"
    echo "the browser logs messages"
    return 1
  fi
  browse "$page" --dump-dom >"$work/dom" || return 1
  for section in "$@"; do
    grep -q "<section id=\"$section\">" "$work/dom" || { echo "no $section on the page"; return 1; }
  done
  for frame in 1280 390; do
    in_frame "$page" $frame
    browse "$work/frame.html" --window-size=1400,3000 --dump-dom >"$work/dom" || return 1
    wide=$(sed -n 's/.*data-wide="\([0-9]*\)".*/\1/p' "$work/dom")
    [ -n "$wide" ] || { echo "the width of the page is unknown"; return 1; }
    [ "$wide" -le $frame ] || { echo "$wide pixels wide in a frame of $frame"; return 1; }
    faults=$(sed -n 's/.*data-faults="\([^"]*\)".*/\1/p' "$work/dom")
    [ -z "$faults" ] || { echo "in a frame of $frame pixels: $faults"; return 1; }
  done
}

studies=(rearm clock cancel deferred phase)
for name in quota warp report; do
  sections=()
  [ "$name" != report ] || sections=("${studies[@]}")
  check "$out/$name.html" "$out/$name" "${sections[@]}" || { echo "in $name.html" >&2; exit 1; }
  browse "$out/$name.html" --window-size=1400,6600 --blink-settings=preferredColorScheme=0 \
    --screenshot="$out/$name-dark.png"
  browse "$work/frame.html" --window-size=600,3000 --screenshot="$out/$name-phone.png"
done
browse "$out/report.html" --no-pdf-header-footer --print-to-pdf="$out/report.pdf"
for picture in {report,quota,warp}-{light,dark,phone}.png report.pdf; do
  [ -s "$out/$picture" ] || { echo "no $picture" >&2; exit 1; }
done

# must_fail FAULT SED: checks that a page with this fault is rejected.
must_fail() {
  sed "$2" "$out/report.html" >"$work/broken.html"
  ! cmp -s "$out/report.html" "$work/broken.html" || { echo "$1: unchanged page" >&2; exit 1; }
  if check "$work/broken.html" "$work/broken" "${studies[@]}" >"$work/said"; then
    echo "$1: not detected" >&2
    exit 1
  fi
  echo "detected: $1: $(tail -n 1 "$work/said")"
}
must_fail "an external picture" 's|</main>|<img src="https://example.invalid/a.png"></main>|'
must_fail "a script" 's|</main>|<script>console.log(1)</script></main>|'
must_fail "too wide" 's|</main>|<p style="width:700px">wide</p></main>|'
must_fail "a text outside of its picture" '0,/<text x="/s//<text x="-/'
must_fail "two texts at one place" \
  '0,/<text [^>]*>[^<]*<.text>/s//&&/'
must_fail "a missing study" 's|<section id="phase">|<section id="other">|'
echo "report, quota and warp: light, dark and 390 pixels are fine, and the report on paper"
