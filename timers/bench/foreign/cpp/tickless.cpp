// Tickless through its C interface, as a program in C uses it: timers in the program's own memory,
// and one reading of the clock for a batch of operations.
#include <tickless.h>

#include "bench.hpp"

namespace {

void check(tickless_status_t status) {
  if (status != TICKLESS_OK) bench::fail(tickless_error_text());
}

struct Peer {
  struct alignas(64) Timer {
    tickless_timer_t raw{};
  };
  tickless_timers_t *set = nullptr;
  std::vector<std::unique_ptr<Timer>> timers;
  std::unique_ptr<Timer> spare;
  uint64_t now = 0;
  static inline std::atomic<uint64_t> fired;

  static void fire(tickless_fired_t *, void *) { fired.fetch_add(1, std::memory_order_relaxed); }

  explicit Peer(const std::string &) {
    check(tickless_timers_start(nullptr, &set));
    check(tickless_timers_now(set, &now));
    spare.reset(make());
  }

  Timer *make() {
    auto *timer = new Timer;
    check(tickless_timer_init(&timer->raw, set, TICKLESS_COARSE, fire, nullptr));
    return timer;
  }

  void arm(Timer *timer, uint64_t after) {
    check(tickless_timer_start_from(&timer->raw, now, static_cast<int64_t>(after)));
  }

  void cancel(Timer *timer) { check(tickless_timer_cancel_sync(&timer->raw, nullptr)); }

  void add(uint64_t after) {
    timers.emplace_back(make());
    arm(timers.back().get(), after);
  }

  void pair(uint64_t after) {
    arm(spare.get(), after);
    check(tickless_timer_cancel(&spare->raw, nullptr));
  }

  void push(size_t timer, uint64_t after) { arm(timers[timer].get(), after); }

  void settle() { check(tickless_timers_now(set, &now)); }

  uint64_t pending() {
    uint64_t count = 0;
    for (auto &timer : timers) {
      bool is;
      check(tickless_timer_is_pending(&timer->raw, &is));
      count += is;
    }
    return count;
  }

  // Its expiry is measured in Rust: the drivers are the same.
  uint64_t expire(const std::vector<uint64_t> &, uint64_t &) { bench::fail("not measured"); }
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
