#!/usr/bin/env bash
# Builds the Debian packages, checks them with lintian, and as root installs them from a local
# repository with apt, uses them as a user would, and removes them.
# Usage: ci/debian.sh                     checks; the packages go into target/debian
#        ci/debian.sh --build FOLDER      only builds
. "$(dirname "$0")/lib.sh"

fail() { echo "$1" >&2 && exit 1; }

# Installs missing tools from Debian if it may.
have_tools() {
  local tool
  for tool in dh lintian dpkg-scanpackages; do command -v "$tool" >/dev/null || return 1; done
}
have_tools || install_packages debhelper lintian dpkg-dev
have_tools || {
  [ "${1:-}" != --build ] || fail "this needs debhelper, lintian and dpkg-dev"
  skip debian "there is no debhelper or lintian, and they cannot be installed"
  exit 0
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$(dpkg-parsechangelog -S Version)" = "$version" ] || fail "debian/changelog has another version"

if [ "${1:-}" = --build ]; then
  debs=$(realpath -m "$2")
else
  debs=$PWD/target/debian
  rm -rf "$debs"
  # Without flags, as ci/package.sh has built the program.
  export RUSTFLAGS=
fi
mkdir -p "$debs"
export DH_QUIET=1
debian/rules clean >/dev/null
DEBS=$debs debian/rules binary
debian/rules clean >/dev/null
[ "${1:-}" != --build ] || exit 0

lintian --fail-on error "$debs"/*.deb

packages=(libtickless0.1 libtickless-dev tickless)
if [ "$(id -u)" != 0 ] || [ -z "${CI_INSTALL:-}" ]; then
  skip "installing the Debian packages" "this needs root, and ci/gate --install"
  exit 0
fi
for package in "${packages[@]}"; do
  ! dpkg -s "$package" >/dev/null 2>&1 || fail "$package is installed; remove it first"
done

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"; dpkg --purge tickless libtickless-dev libtickless0.1 >/dev/null 2>&1' EXIT
(cd "$debs" && dpkg-scanpackages . >"$work/Packages" && cp ./*.deb "$work")
echo "deb [trusted=yes] file:$work ./" >"$work/sources"
mkdir "$work/lists"
apt=(apt-get -qq -o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=-
  -o "Dir::State::Lists=$work/lists" -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache=)
"${apt[@]}" update
DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends tickless \
  libtickless-dev >"$work/log" || { cat "$work/log" >&2 && exit 1; }

# Installed tools and folders only: neither paths nor variables point to the library.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
[ "$(pkg-config --modversion tickless)" = "$version" ] || fail "pkg-config has another version"
read -ra flags <<<"$(pkg-config --cflags --libs tickless)"
read -ra private <<<"$(pkg-config --static --libs tickless | sed 's/-ltickless//')"
examples=/usr/share/doc/libtickless-dev/examples
gcc "$examples/basic_timeout.c" -o "$work/shared" "${flags[@]}"
gcc "$examples/basic_timeout.c" -o "$work/static" -l:libtickless.a "${private[@]}"
g++ -std=c++17 "$examples/retry.cpp" -o "$work/retry" "${flags[@]}"
for program in shared static retry; do
  timeout 60 "$work/$program" >/dev/null || fail "$program fails"
done
ldd "$work/shared" | grep 'libtickless.so.0.1 => /' >/dev/null || fail "the library is not found"
! ldd "$work/static" | grep tickless >/dev/null || fail "the library is not linked statically"
if command -v cmake >/dev/null; then
  cat >"$work/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(tickless $version REQUIRED CONFIG)
add_executable(user $examples/basic_timeout.c)
target_link_libraries(user tickless::tickless)
CMAKE
  { cmake -S "$work" -B "$work/built" && cmake --build "$work/built"; } >/dev/null
  timeout 60 "$work/built/user" >/dev/null
fi

tickless replay traces/nginx.txt.gz | grep -q restart-aware || fail "the program fails"
for file in man/man{1/tickless-replay.1,3/tickless_timer_start.3}.gz \
  bash-completion/completions/tickless; do
  [ -s "/usr/share/$file" ] || fail "there is no /usr/share/$file"
done

dpkg -L "${packages[@]}" | grep tickless >"$work/files"
dpkg --purge tickless libtickless-dev libtickless0.1 >/dev/null
while IFS= read -r file; do
  [ ! -e "$file" ] || fail "removing the packages leaves $file"
done <"$work/files"
echo "the Debian packages are in $debs"
