// libev: a 4-heap of a loop, one thread. Its loop does not run while timers are armed and cancelled.
#include <ev.h>

#include "bench.hpp"

namespace {

struct Peer {
  using Timer = ev_timer;
  struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
  std::vector<std::unique_ptr<ev_timer>> timers;
  ev_timer spare;
  static inline uint64_t fired;

  static void fire(struct ev_loop *, ev_timer *, int) { fired++; }

  explicit Peer(const std::string &) { ev_timer_init(&spare, fire, 0., 0.); }
  ~Peer() { ev_loop_destroy(loop); }

  void start(ev_timer *timer, uint64_t after) {
    ev_timer_set(timer, double(after) / 1e9, 0.);
    ev_timer_start(loop, timer);
  }

  void add(uint64_t after) {
    timers.push_back(std::make_unique<ev_timer>());
    ev_timer_init(timers.back().get(), fire, 0., 0.);
    start(timers.back().get(), after);
  }

  void pair(uint64_t after) {
    start(&spare, after);
    ev_timer_stop(loop, &spare);
  }

  // What its manual says for idle timeouts.
  void push(size_t timer, uint64_t after) {
    timers[timer]->repeat = double(after) / 1e9;
    ev_timer_again(loop, timers[timer].get());
  }

  void settle() {}

  uint64_t pending() {
    uint64_t count = 0;
    for (auto &timer : timers) count += ev_is_active(timer.get()) != 0;
    return count;
  }

  uint64_t expire(const std::vector<uint64_t> &after, uint64_t &took) {
    fired = 0;
    ev_now_update(loop);
    for (auto one : after) add(one);
    bench::sleep_until(bench::wall_time() + bench::SECOND + 20'000'000);
    uint64_t began = bench::thread_time();
    ev_run(loop, EVRUN_NOWAIT);
    took = bench::thread_time() - began;
    for (auto &timer : timers) ev_timer_stop(loop, timer.get());
    return fired;
  }

  ev_timer *make() { bench::fail("one thread only"); }
  void arm(ev_timer *, uint64_t) {}
  void cancel(ev_timer *) {}
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
