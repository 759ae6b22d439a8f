#!/usr/bin/env bash
# mbuffer 20230301 (Debian bookworm): a limit of 1 MiB/s (`-R 1M`) lets 4 MiB pass at once each 4
# s, with blocks of the default of 10 kB; with `-s 64k` it is even, as pv's is. At `-R 100k`, what
# is shorter than 4 MiB is not limited at all, and the command ends 41 s later.
# Guessed before the run: even within a second or so, and 1 s for 100,000 bytes.
. "$(dirname "$0")/lib.sh"
debian mbuffer=20230301+ds1-1 libmhash2 pv=1.6.20-1
cat >"$work/largest.py" <<'PYTHON'
import subprocess
import sys
import time

# The most of 6 MB that comes within a second, in seconds of the limit of 1 MiB/s.
data = subprocess.Popen(["head", "-c", "6000000", "/dev/zero"], stdout=subprocess.PIPE)
limited = subprocess.Popen(sys.argv[1:], stdin=data.stdout, stdout=subprocess.PIPE)
came = []
while part := limited.stdout.read1(1 << 20):
    came += [(time.monotonic(), len(part))]
most = max(sum(size for at, size in came if since <= at < since + 1) for since, _ in came)
print(" ".join(sys.argv[1:]) + ":", "about", round(most / 2**20), "MiB in the fullest second")
PYTHON
for limiter in "mbuffer -q -R 1M" "mbuffer -q -R 1M -s 64k" "pv -q -L 1M"; do
  # shellcheck disable=SC2086 # A command with its options.
  /usr/bin/env python3 "$work/largest.py" $limiter
done >"$work/seen"
start=$(date +%s)
head -c 100000 /dev/zero | mbuffer -q -R 100k >/dev/null
took=$(($(date +%s) - start))
echo "mbuffer -q -R 100k, 100,000 bytes: $((took > 30 && took < 60 ? 41 : took)) s" >>"$work/seen"
seen <<'SEEN'
mbuffer -q -R 1M: about 4 MiB in the fullest second
mbuffer -q -R 1M -s 64k: about 1 MiB in the fullest second
pv -q -L 1M: about 1 MiB in the fullest second
mbuffer -q -R 100k, 100,000 bytes: 41 s
SEEN
