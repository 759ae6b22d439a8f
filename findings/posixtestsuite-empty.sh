#!/usr/bin/env bash
# posixtestsuite 1.5.2 of Debian (1.5.2-8): contains no test of the Open POSIX suite, only a log of
# a run.
# Guessed before the run: the suite, compiled or as source.
. "$(dirname "$0")/lib.sh"
debian posixtestsuite=1.5.2-8
(cd "$work/root" && find usr -type f | sort) >"$work/seen"
seen <<'SEEN'
usr/share/doc/posixtestsuite/changelog.Debian.gz
usr/share/doc/posixtestsuite/changelog.gz
usr/share/doc/posixtestsuite/copyright
usr/share/doc/posixtestsuite/report.x86_64-linux-gnu.log.gz
SEEN
