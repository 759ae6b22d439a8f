#!/usr/bin/env bash
# Builds the Python wheel, which contains the program, and tests it in a new virtual environment:
# mypy, doctests, tests, examples, and the Python code in lab/python/README.md.
. "$(dirname "$0")/lib.sh"

fresh_python mypy pytest polars altair pyarrow pandas
"$bin/tickless" --version
(cd lab/python &&
  "$bin/mypy" --config-file pyproject.toml tickless tests/test_tickless.py examples/*.py)
# Runs outside the source folder, so that the tests use the installed package.
cp -r lab/python/tests lab/python/examples lab/python/README.md "$venv/"
installed=$("$bin/python" -c 'import tickless, os; print(os.path.dirname(tickless.__file__))')
export TICKLESS_TRACES="$PWD/traces"
(cd "$venv" && "$bin/pytest" -q -p no:cacheprovider --doctest-modules --doctest-glob=README.md \
  tests/test_tickless.py README.md "$installed/__init__.py")

(cd "$venv" && "$bin/python" examples/fleet_of_traces.py "$TICKLESS_TRACES" 300)
(cd "$venv" && "$bin/python" examples/grid.py)

# The Python code in lab/python/README.md must draw a plot.
awk '/^<!-- ci: python -->/ { marked = 1 } marked && /^```$/ { exit }
  inside { print } marked && /^```python$/ { inside = 1 }' lab/python/README.md >"$venv/readme.py"
[ "$(wc -l <"$venv/readme.py")" = 3 ] ||
  { echo "lab/python/README.md has no three lines of Python" >&2; exit 1; }
ln -s "$PWD/traces" "$venv/traces"
(cd "$venv" && "$bin/python" readme.py && grep -q vega writes.html)
