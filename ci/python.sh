#!/usr/bin/env bash
# Builds the wheel for Python, with the program in it, and tests it in a fresh virtual environment:
# clippy, stubs and examples by mypy, doctests, tests, an example, and the lines of the README.
. "$(dirname "$0")/lib.sh"
need_component clippy

(cd python && cargo fmt --check && cargo clippy --locked --all-targets -- -D warnings)

fresh_python mypy pytest polars altair pyarrow pandas duckdb
"$bin/tickless" --version
(cd python && "$bin/mypy" --config-file pyproject.toml tests/test_tickless.py examples/*.py)
# The stubs describe what is there.
(cd "$venv" && "$bin/stubtest" tickless._native)
# Not from the source folder: what is tested is what is installed.
cp -r python/tests python/examples python/README.md "$venv/"
installed=$("$bin/python" -c 'import tickless, os; print(os.path.dirname(tickless.__file__))')
export TICKLESS_TRACES="$PWD/traces"
(cd "$venv" && "$bin/pytest" -q -p no:cacheprovider --doctest-modules --doctest-glob=README.md \
  tests/test_tickless.py README.md "$installed/__init__.py")

(cd "$venv" && "$bin/python" examples/fleet_of_traces.py "$TICKLESS_TRACES" 300 fleet.html)
[ "$(grep -o '<svg' "$venv/fleet.html" | wc -l)" = 3 ] ||
  { echo "the example has not drawn its three plots" >&2; exit 1; }

# The lines that python/README.md gives a newcomer draw a plot.
awk '/^<!-- ci: python -->/ { marked = 1 } marked && /^```$/ { exit }
  inside { print } marked && /^```python$/ { inside = 1 }' python/README.md >"$venv/readme.py"
[ "$(wc -l <"$venv/readme.py")" = 3 ] ||
  { echo "python/README.md has no three lines of Python" >&2; exit 1; }
ln -s "$PWD/traces" "$venv/traces"
(cd "$venv" && "$bin/python" readme.py && grep -q vega writes.html)
