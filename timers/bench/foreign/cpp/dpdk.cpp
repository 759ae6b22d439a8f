// DPDK's rte_timer: a skip list and a lock for each lcore. Timers are armed for the lcore that arms
// them. Between threads, both are lcores, and rte_timer_stop_sync waits for a running callback.
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>

#include "bench.hpp"

namespace {

struct Peer {
  using Timer = rte_timer;
  std::vector<std::unique_ptr<rte_timer>> timers;
  rte_timer spare;
  bool is_crossed;
  static inline uint64_t fired;

  static void fire(rte_timer *, void *) { fired++; }

  explicit Peer(const std::string &kind) : is_crossed(kind == "crossed") {
    static bool is_ready = false;
    if (!is_ready) {
      is_ready = true;
      std::string lcore = std::to_string(bench::cpus().back());
      const char *arguments[] = {"bench", "--no-huge",     "--no-pci",    "--no-telemetry",
                                 "-m",    "64",            "--no-shconf", "--log-level",
                                 "error", "--main-lcore",  lcore.c_str(), "-l",
                                 lcore.c_str()};
      auto allowed = bench::cpus();
      constexpr int count = sizeof arguments / sizeof *arguments;
      if (rte_eal_init(count, const_cast<char **>(arguments)) < 0) bench::fail("no EAL");
      if (rte_timer_subsystem_init() < 0) bench::fail("no timers");
      // What comes later may run everywhere again; each thread pins itself.
      cpu_set_t set;
      CPU_ZERO(&set);
      for (int cpu : allowed) CPU_SET(cpu, &set);
      sched_setaffinity(0, sizeof set, &set);
    }
    rte_timer_init(&spare);
  }

  static uint64_t ticks(uint64_t ns) {
    return static_cast<uint64_t>(double(ns) * double(rte_get_timer_hz()) / 1e9);
  }

  static void start(rte_timer *timer, uint64_t after) {
    while (rte_timer_reset(timer, ticks(after), SINGLE, rte_lcore_id(), fire, nullptr) != 0) {
    }
  }

  void add(uint64_t after) {
    timers.push_back(std::make_unique<rte_timer>());
    rte_timer_init(timers.back().get());
    start(timers.back().get(), after);
  }

  void pair(uint64_t after) {
    start(&spare, after);
    rte_timer_stop(&spare);
  }

  void push(size_t timer, uint64_t after) { start(timers[timer].get(), after); }

  void settle() {}

  uint64_t pending() {
    uint64_t count = 0;
    for (auto &timer : timers) count += rte_timer_pending(timer.get()) != 0;
    return count;
  }

  uint64_t expire(const std::vector<uint64_t> &after, uint64_t &took) {
    fired = 0;
    for (auto one : after) add(one);
    bench::sleep_until(bench::wall_time() + bench::SECOND + 20'000'000);
    uint64_t began = bench::thread_time();
    rte_timer_manage();
    took = bench::thread_time() - began;
    return fired;
  }

  static void be_an_lcore() {
    if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0) bench::fail("no lcore");
  }

  rte_timer *make() {
    be_an_lcore();
    auto *timer = new rte_timer;
    rte_timer_init(timer);
    return timer;
  }

  void arm(rte_timer *timer, uint64_t after) {
    be_an_lcore();
    start(timer, after);
  }

  void cancel(rte_timer *timer) {
    be_an_lcore();
    if (is_crossed) rte_timer_stop_sync(timer);
    else rte_timer_stop(timer);
  }
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
