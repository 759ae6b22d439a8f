#!/usr/bin/env bash
# Timers for ten instants, set in another order, and a program that is busy until all are due: the
# order in which event loops run them. GLib 2.74.6 runs them as they were set, Mojolicious 9.31
# (Perl) in an order that no two runs share. Node 20.20 runs all timers of one duration, then
# those of the next. AnyEvent's own loop, EV, IO::Async and POE go by the times.
# Guessed before the run: by their times in all of them.
. "$(dirname "$0")/lib.sh"
debian libglib-perl=3:1.329.3-2+b2 libglib2.0-0=2.74.6-2+deb12u9 libmojolicious-perl=9.31+dfsg-1 \
  libev-perl=4.33-2 libcommon-sense-perl=3.75-3 libanyevent-perl=7.170-2+b3 \
  libio-async-perl=0.802-1 libfuture-perl=0.49-1 libstruct-dumb-perl=0.14-1 \
  libmetrics-any-perl=0.09-1 libpoe-perl=2:1.3700-1 libio-pipely-perl=0.006-1
usr=${LD_LIBRARY_PATH%/lib/*}
export PERL5LIB=$usr/share/perl5:$usr/lib/x86_64-linux-gnu/perl5/5.36
# order SETUP TIMER RUN: a program in Perl; TIMER sets a timer of $s seconds that calls ring $n.
order() {
  perl -e "use Time::HiRes; \$left = 10; sub ring { print \"\$_[0] \"; \$left-- } $1;
    for my \$n (7, 3, 10, 1, 5, 9, 2, 8, 4, 6) { my \$s = \$n / 50; $2 }
    Time::HiRes::sleep 0.3; $3; exit" | xargs
}
{
  echo "GLib: $(order 'use Glib' 'Glib::Timeout->add(1000 * $s, sub { ring $n; 0 })' \
    'Glib::MainContext->default->iteration(1) while $left')"
  echo "AnyEvent: $(order 'use AnyEvent::Loop; AnyEvent::detect()' \
    'push @timers, AE::timer $s, 0, sub { ring $n }' 'AnyEvent::Loop::one_event() while $left')"
  echo "EV: $(order 'use EV' 'push @timers, EV::timer $s, 0, sub { ring $n }' 'EV::run')"
  echo "IO::Async: $(order 'use IO::Async::Loop::Select; $loop = IO::Async::Loop::Select->new' \
    '$loop->watch_time(after => $s, code => sub { ring $n })' '$loop->loop_once while $left')"
  echo "POE: $(order 'sub start { for (@due) { $_[POE::Session::KERNEL()]->delay_set(@$_) } }
    use POE' 'push @due, ["due", $s, $n]' 'POE::Session->create(inline_states => {
      _start => sub { start(@_); Time::HiRes::sleep 0.3 },
      due => sub { ring $_[POE::Session::ARG0()] } }); POE::Kernel->run' 2>/dev/null)"
  for _ in 1 2 3 4 5; do
    order 'use Mojo::Reactor::Poll; $loop = Mojo::Reactor::Poll->new' \
      '$loop->timer($s => sub { ring $n })' '$loop->one_tick while $left'
  done | sort -u >"$work/orders"
  echo "Mojolicious: orders of five runs: $(wc -l <"$work/orders"), by time:" \
    "$(grep -c '^1 2 3 4 5 6 7 8 9 10$' "$work/orders" || true)"
} >"$work/all"
# Timers of 200 ms for 200, 220 and 240, and one of 100 ms for 210 and 230.
command node --input-type=module - >>"$work/all" <<'JS'
const [begun, order] = [performance.now(), []];
const busy = (until) => { while (performance.now() < begun + until); };
for (const [at, duration] of [[0, 200], [20, 200], [40, 200], [110, 100], [130, 100]]) {
  busy(at);
  setTimeout(() => order.push(at + duration), duration);
}
busy(300);
setTimeout(() => console.log("Node:", ...order), 300);
JS
mv "$work/all" "$work/seen"
seen <<'SEEN'
GLib: 7 3 10 1 5 9 2 8 4 6
AnyEvent: 1 2 3 4 5 6 7 8 9 10
EV: 1 2 3 4 5 6 7 8 9 10
IO::Async: 1 2 3 4 5 6 7 8 9 10
POE: 1 2 3 4 5 6 7 8 9 10
Mojolicious: orders of five runs: 5, by time: 0
Node: 200 220 240 210 230
SEEN
