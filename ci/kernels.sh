#!/usr/bin/env bash
# Runs the program on Debian's kernels in guests of an emulator, and compares what it records and
# prints with what each kernel counts. A kprobe counts the writes of the timer device. Rewrites the
# tables of docs/book/src/kernels.md. Fails if a command fails, if a count differs, or if the
# kernel's own policy replays a load more than 3 % off, or with a share of interrupts for nothing
# that is off by more than 3 percentage points.
#
# The kernels are taken by the names of their packages, from Debian's servers; nothing is installed.
# ci/kernels has what a guest runs. Needs qemu-system-x86_64, busybox (static), gcc, apt-get, dpkg.
# Usage: ci/kernels.sh [FOLDER [KERNEL...]]   12 minutes each; results and kernels stay in FOLDER,
#                                             and what it has is not made again
. "$(dirname "$0")/lib.sh"

name=ci/kernels.sh
kept=${1:-}
[ -z "$kept" ] || shift
for program in qemu-system-x86_64 busybox gcc apt-get dpkg python3; do
  command -v $program >/dev/null || { skip $name "there is no $program"; exit 0; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=${kept:-$work/kept}
mkdir -p "$folder/images"
folder=$(cd "$folder" && pwd)
wanted=("$@")
[ $# -gt 0 ] || wanted=(6.12 6.12rt 7.2 7.2rt rc)

# Runs apt-get or apt-cache with lists of its own, so that the machine's sources stay as they are.
apt() {
  "apt-$1" -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
    -o APT::Sandbox::User=root "${@:2}"
}

# Prints the newest package of a kernel: the longest-lived names come with each Debian release, the
# others with the development branches. `rc` is the newest release candidate of all.
package_of() {
  case $1 in
    6.12) apt cache pkgnames linux-image-6.12 | grep -E '^[^+]*\+deb13-cloud-amd64-unsigned$' ;;
    6.12rt) apt cache pkgnames linux-image-6.12 | grep -E '^[^+]*\+deb13-rt-amd64-unsigned$' ;;
    rc) apt cache pkgnames linux-binary- | grep -E '^linux-binary-[0-9]+\.[0-9]+-cloud-amd64$' ;;
    *rt) apt cache pkgnames "linux-binary-${1%rt}." | grep -E '[0-9]-rt-amd64$' ;;
    *) apt cache pkgnames "linux-binary-$1." | grep -E '[0-9]-cloud-amd64$' ;;
  esac | sort -V | tail -n 1
}

# Puts the image of a kernel into the folder.
fetch() {
  local package
  [ ! -e "$folder/images/$1" ] || return 0
  package=$(package_of "$1") && [ -n "$package" ] || return 1
  rm -rf "$work/package" && mkdir "$work/package"
  (cd "$work/package" && apt get download "$package" >/dev/null && dpkg -x ./*.deb .) || return 1
  cp "$(find "$work/package" -name 'vmlinuz*' | head -n 1)" "$folder/images/$1"
}

# Packs a guest's files: busybox, the program with its libraries, the loads, and the job $1.
pack() {
  local root=$work/root library
  rm -rf "$root" && mkdir -p "$root/bin" "$root/dev"
  cp "$(command -v busybox)" "$root/bin/busybox"
  cp ci/kernels/init "$root/init" && chmod +x "$root/init"
  cp "ci/kernels/$1" "$root/job"
  gcc -O2 -static -o "$root/bin/load" ci/kernels/load.c
  cp "$tickless" "$root/bin/tickless"
  for library in $(ldd "$tickless" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
  done
  mknod "$root/dev/console" c 5 1
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/$1.cpio.gz"
}

# Boots kernel $1 with $2 CPUs, and leaves what its job $3 has written in a folder. Time is counted
# in instructions, so that it does not depend on this machine's load. One thread emulates all CPUs:
# with one for each, a kernel can die when tracing is switched on.
boot() {
  local out=$folder/$1-$2cpus/$3
  [ ! -e "$out/release" ] || return 0
  rm -rf "$out" && mkdir -p "$out"
  timeout 3600 nice -n 10 qemu-system-x86_64 -accel tcg,thread=single -icount shift=1,sleep=off \
    -cpu max -smp "$2" -m 1024 -nodefaults -no-user-config -nographic -no-reboot \
    -kernel "$folder/images/$1" -initrd "$work/$3.cpio.gz" \
    -append 'console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off' \
    -serial "file:$out/console" -device virtio-serial-pci -chardev "file,id=out,path=$out/out.tgz" \
    -device virtserialport,chardev=out </dev/null >/dev/null 2>&1 || true
  tar xzf "$out/out.tgz" -C "$out" 2>/dev/null ||
    { echo "Linux $1 with $2 CPUs did not end its job: $out/console" >&2; return 1; }
  rm "$out/out.tgz"
}

[ "$(id -u)" = 0 ] || { skip $name "making a device file for the guests needs root"; exit 0; }
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep '/debian$' |
  head -n 1) || { skip $name "there is no server of Debian's packages in apt's sources"; exit 0; }
key=/usr/share/keyrings/debian-archive-keyring.gpg
for branch in sid experimental trixie; do
  echo "deb [signed-by=$key] $mirror $branch main"
done >"$work/sources.list"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
apt get update >/dev/null 2>&1 || true

cargo build --locked --release -q -p tickless-cli
tickless=${CARGO_TARGET_DIR:-$PWD/target}/release/tickless
pack loads
pack commands
had=()
guests=()
failed=0
for kernel in "${wanted[@]}"; do
  fetch "$kernel" && had+=("$kernel") || skip $name "Linux $kernel is not to be had"
done
for cpus in 2 4; do
  for kernel in "${had[@]}"; do
    guests+=("$kernel-${cpus}cpus")
    boot "$kernel" "$cpus" loads || failed=1
    boot "$kernel" "$cpus" commands || failed=1
  done
done
page=docs/book/src/kernels.md
python3 ci/kernels/table.py "$tickless" "$folder" $page "${guests[@]}" || failed=1
exit $failed
