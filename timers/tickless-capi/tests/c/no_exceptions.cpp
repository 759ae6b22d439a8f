// Compiled with -fno-exceptions: errors are error codes.
#include "tickless.hpp"

#include "check.h"
#include <atomic>
#include <thread>

using namespace std::chrono_literals;

int main() {
  std::error_code failed;
  tickless_options_t options{};
  options.tick_ns = 1;
  tickless::timers none(options, failed);
  CHECK(failed == tickless::code(TICKLESS_OUT_OF_RANGE) && none.get() == nullptr);
  options = {};
  options.bases = 1;
  tickless::timers timers(options, failed);
  CHECK(!failed);
  std::atomic<int> fired{0};
  tickless::timer timer(timers, tickless::precise, [&](tickless::fired) { fired++; });
  tickless::periodic heart(timers, [&](tickless::fired) { fired++; });
  tickless::clock_timer wall(timers, TICKLESS_CLOCK_REALTIME,
                             [&](tickless::clock_fired) { fired++; });
  timer.start(0ms, failed);
  UNTIL(!failed && fired == 1);
  wall.start(0ms, failed);
  UNTIL(!failed && fired == 2);
  heart.start(1ms, failed);
  UNTIL(!failed && fired > 3);
  CHECK(heart.cancel_sync() != tickless::found::idle);
  heart.start(0ms, failed);
  CHECK(failed == tickless::code(TICKLESS_OUT_OF_RANGE));
  (void)timer.shutdown_sync();
  timer.start(1ms, failed);
  CHECK(failed == tickless::code(TICKLESS_SHUT));
  tickless::limiter limiter(timers, 1, 1h);
  limiter.try_acquire(1, failed);
  CHECK(!failed);
  limiter.try_acquire(1, failed);
  CHECK(failed == tickless::code(TICKLESS_EMPTY));
  /* In a thread of its own, because of what quota.c says about valgrind. */
  std::thread([&] { limiter.acquire_for(1ms, 1, failed); }).join();
  CHECK(failed == tickless::code(TICKLESS_TIMED_OUT));
  tickless::keyed keyed(timers, 1, 1h);
  keyed.try_acquire("a key", 2, failed);
  CHECK(failed == tickless::code(TICKLESS_OUT_OF_RANGE));
  return 0;
}
