#!/usr/bin/env bash
# Timers of 400 ms in event loops of Perl (Debian bookworm), and a first call that takes 3.8 s, past
# nine later ones. IO::Async and a "hard" timer of Event run all nine at once, and go on at the old
# times. AnyEvent's own loop and EV run two, Mojolicious one, and another timer of Event none; their
# next is a whole period after the work.
# Guessed before the run: one call at once, and then the old times, in all but EV, whose manual
# says that it counts from now.
. "$(dirname "$0")/lib.sh"
debian libmojolicious-perl=9.31+dfsg-1 libev-perl=4.33-2 libcommon-sense-perl=3.75-3 \
  libanyevent-perl=7.170-2+b3 libio-async-perl=0.802-1 libfuture-perl=0.49-1 \
  libstruct-dumb-perl=0.14-1 libmetrics-any-perl=0.09-1 libevent-perl=1.28-2
usr=${LD_LIBRARY_PATH%/lib/*}
export PERL5LIB=$usr/share/perl5:$usr/lib/x86_64-linux-gnu/perl5/5.36
# late NAME PROGRAM: a program that calls `tick` each 400 ms, for as long as $go is true.
late() {
  perl -e 'use Time::HiRes "time"; ($go, $start) = (1, time);
    sub tick { push @at, time - $start; Time::HiRes::sleep 3.8 if @at == 1;
      $go = 0 if time - $start > 5; }
    '"$2"'; $end = $at[0] + 3.8; @late = grep { $_ > $end - 0.01 && $_ < $end + 0.15 } @at;
    ($next) = grep { $_ >= $end + 0.15 } @at;
    printf "%s: %d at once, next after %s\n", shift, scalar @late,
      $next - $end < 0.3 ? "200 ms" : "400 ms"; exit' "$1"
}
{
  late IO::Async 'use IO::Async::Loop::Select; use IO::Async::Timer::Periodic;
    $loop = IO::Async::Loop::Select->new; $start = time;
    $timer = IO::Async::Timer::Periodic->new(interval => 0.4, on_tick => sub { tick() });
    $loop->add($timer->start); $loop->loop_once while $go'
  for hard in 1 0; do
    late "Event, hard => $hard" "use Event; \$start = time;
      Event->timer(interval => 0.4, hard => $hard, cb => sub { tick(); Event::unloop() if !\$go });
      Event::loop()"
  done
  late AnyEvent 'use AnyEvent::Loop; AnyEvent::detect(); $start = time;
    $timer = AE::timer 0.4, 0.4, sub { tick() }; AnyEvent::Loop::one_event() while $go'
  late EV 'use EV; $start = time; $timer = EV::timer 0.4, 0.4, sub { tick(); EV::break() if !$go };
    EV::run'
  late Mojolicious 'use Mojo::Reactor::Poll; $loop = Mojo::Reactor::Poll->new; $start = time;
    $loop->recurring(0.4 => sub { tick() }); $loop->one_tick while $go'
} >"$work/seen"
seen <<'SEEN'
IO::Async: 9 at once, next after 200 ms
Event, hard => 1: 9 at once, next after 200 ms
Event, hard => 0: 0 at once, next after 400 ms
AnyEvent: 2 at once, next after 400 ms
EV: 2 at once, next after 400 ms
Mojolicious: 1 at once, next after 400 ms
SEEN
