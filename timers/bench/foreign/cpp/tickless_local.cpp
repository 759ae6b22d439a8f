// Tickless's timers of one thread through the C interface. The loop does not advance while timers
// are armed and cancelled.
#include <tickless.h>

#include "bench.hpp"

namespace {

void check(tickless_status_t status) {
  if (status != TICKLESS_OK) bench::fail(tickless_error_text());
}

struct Peer {
  using Timer = tickless_key_t;
  tickless_local_t *local = nullptr;
  std::vector<Timer> timers;
  Timer spare;

  explicit Peer(const std::string &) {
    check(tickless_local_create_manual(bench::SECOND, 0, 0, &local));
    spare = insert();
  }
  ~Peer() { tickless_local_destroy(local); }

  Timer insert() {
    Timer timer;
    check(tickless_local_insert(local, TICKLESS_COARSE, nullptr, &timer));
    return timer;
  }

  void start(Timer timer, uint64_t after) {
    check(tickless_local_start(local, timer, static_cast<int64_t>(after)));
  }

  void add(uint64_t after) {
    timers.push_back(insert());
    start(timers.back(), after);
  }

  void pair(uint64_t after) {
    start(spare, after);
    check(tickless_local_cancel(local, spare, nullptr));
  }

  void push(size_t timer, uint64_t after) { start(timers[timer], after); }

  void settle() {}

  uint64_t pending() {
    size_t count;
    check(tickless_local_count(local, nullptr, &count));
    return count;
  }

  // Its expiry is measured in Rust.
  uint64_t expire(const std::vector<uint64_t> &, uint64_t &) { bench::fail("not measured"); }

  Timer *make() { bench::fail("one thread only"); }
  void arm(Timer *, uint64_t) {}
  void cancel(Timer *) {}
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
