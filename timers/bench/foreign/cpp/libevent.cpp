// libevent: a heap behind the lock of its base, or, with COMMON_TIMEOUT, a list of all timeouts of
// one duration. Between threads its loop runs in a thread of its own, as it does in a program, and
// event_del waits while a callback runs.
#include <event2/event.h>
#include <event2/thread.h>

#include "bench.hpp"

namespace {

timeval time_of(uint64_t ns) {
  return {static_cast<time_t>(ns / bench::SECOND), static_cast<long>(ns % bench::SECOND / 1000)};
}

struct Peer {
  using Timer = event;
  event_base *base;
  std::vector<event *> timers;
  event *spare;
  std::thread loop;
  static inline uint64_t fired;
#ifdef COMMON_TIMEOUT
  const timeval *common;
#endif

  static void fire(evutil_socket_t, short, void *) { fired++; }

  explicit Peer(const std::string &kind) {
    bool is_shared = kind == "own" || kind == "crossed";
    if (is_shared) evthread_use_pthreads();
    base = event_base_new();
    spare = evtimer_new(base, fire, nullptr);
#ifdef COMMON_TIMEOUT
    timeval after{600, 0};
    common = event_base_init_common_timeout(base, &after);
#endif
    if (is_shared) {
      // Earlier than all others, so that none has to wake the loop.
      timeval first{300, 0};
      event_add(evtimer_new(base, fire, nullptr), &first);
      loop = std::thread([this] { event_base_dispatch(base); });
      loop.detach();
    }
  }

  void start(event *timer, uint64_t after) {
#ifdef COMMON_TIMEOUT
    (void)after;
    event_add(timer, common);
#else
    timeval time = time_of(after);
    event_add(timer, &time);
#endif
  }

  void add(uint64_t after) {
    timers.push_back(evtimer_new(base, fire, nullptr));
    start(timers.back(), after);
  }

  void pair(uint64_t after) {
    start(spare, after);
    event_del(spare);
  }

  void push(size_t timer, uint64_t after) { start(timers[timer], after); }

  void settle() {}

  uint64_t pending() {
    uint64_t count = 0;
    for (auto *timer : timers) count += evtimer_pending(timer, nullptr) != 0;
    return count;
  }

  uint64_t expire(const std::vector<uint64_t> &after, uint64_t &took) {
    fired = 0;
    for (auto one : after) add(one);
    bench::sleep_until(bench::wall_time() + bench::SECOND + 20'000'000);
    uint64_t began = bench::thread_time();
    event_base_loop(base, EVLOOP_NONBLOCK);
    took = bench::thread_time() - began;
    for (auto *timer : timers) event_free(timer);
    event_free(spare);
    event_base_free(base);
    return fired;
  }

  event *make() { return evtimer_new(base, fire, nullptr); }
  void arm(event *timer, uint64_t after) { start(timer, after); }
  void cancel(event *timer) { event_del(timer); }
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
