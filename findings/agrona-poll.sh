#!/usr/bin/env bash
# agrona 2.1.0 (Java), `DeadlineTimerWheel`: one call of `poll` looks at one tick, however late it
# is. With ten timers of 10 to 100 ms on a wheel of 1 ms, a poll at 1 s fires none and returns 0,
# and so do the nine after it; the last of the timers fires at the 101st call. A loop that polls
# until nothing has fired fires nothing.
# Guessed before the run: the first poll fires all ten, which are due.
. "$(dirname "$0")/lib.sh"
java org.agrona:agrona:2.1.0 <<'JAVA'
import java.util.concurrent.TimeUnit;
import org.agrona.DeadlineTimerWheel;

class Main {
    public static void main(String[] none) {
        DeadlineTimerWheel wheel = new DeadlineTimerWheel(TimeUnit.MILLISECONDS, 0, 1, 1024);
        for (int deadline = 10; deadline <= 100; deadline += 10) {
            wheel.scheduleTimer(deadline);
        }
        for (int call = 1; wheel.timerCount() > 0; call++) {
            int fired = wheel.poll(1000, (unit, now, timer) -> true, 100);
            if (call == 1 || fired > 0) {
                System.out.println("call " + call + ": " + fired);
            }
        }
    }
}
JAVA
seen <<'SEEN'
call 1: 0
call 11: 1
call 21: 1
call 31: 1
call 41: 1
call 51: 1
call 61: 1
call 71: 1
call 81: 1
call 91: 1
call 101: 1
SEEN
