// One peer in C or C++, measured by a program that asks for one sample after the other:
// timers/bench/src/peers/foreign.rs. The arguments say what is measured:
//
//   pairs P N        arm a timer and cancel it, N times, with P others pending
//   push P N         move one of P timers, by chance, to its deadline and up to 100 s
//   push_equal P N   the same, each move behind all others
//   expire P 0       P timers spread over a second expire
//   own 0 N          two threads arm and cancel timers of their own
//   crossed 0 N      one thread arms, the other cancels, and waits for callbacks if the peer can
//
// The program says "ready", and then for each line that it reads: ns per operation, how many are
// pending or have fired, and the sum of all deadlines, so that the caller sees that the work was
// the same. Generator, deadlines and order are those of the cases in Rust.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bench {

constexpr uint64_t SECOND = 1'000'000'000;

struct Random {
  uint64_t state = 0x2545f4914f6cdd1d;

  uint64_t below(uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(state) * bound) >> 64);
  }

  uint64_t seconds(uint64_t from, uint64_t to) {
    return from * SECOND + below((to - from) * SECOND);
  }

  std::vector<uint64_t> many(size_t count, uint64_t from, uint64_t to) {
    std::vector<uint64_t> all(count);
    for (auto &one : all) one = seconds(from, to);
    return all;
  }
};

inline uint64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * SECOND + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t thread_time() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
inline uint64_t wall_time() { return clock_ns(CLOCK_MONOTONIC); }

inline void sleep_until(uint64_t wall) {
  timespec until{static_cast<time_t>(wall / SECOND), static_cast<long>(wall % SECOND)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

[[noreturn]] inline void fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

// The CPUs that this program may use.
inline std::vector<int> cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  return all;
}

inline void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Runs two functions on two threads, each on a CPU of its own, the last one first. Wall time from
// when the first began to when the last ended.
inline uint64_t both(const std::function<void()> &one, const std::function<void()> &other) {
  static const std::vector<int> allowed = cpus();
  std::atomic<int> waiting{2};
  uint64_t began[2], ended[2];
  auto work = [&](size_t nth, const std::function<void()> &function) {
    pin(allowed[allowed.size() - 1 - nth % allowed.size()]);
    waiting--;
    while (waiting.load() > 0) {
    }
    began[nth] = wall_time();
    function();
    ended[nth] = wall_time();
  };
  std::thread second([&] { work(1, other); });
  std::thread first([&] { work(0, one); });
  first.join();
  second.join();
  return std::max(ended[0], ended[1]) - std::min(began[0], began[1]);
}

// One producer, one consumer.
template <class T>
struct Ring {
  std::vector<std::atomic<T *>> places = std::vector<std::atomic<T *>>(1024);
  size_t in = 0, out = 0;

  static void wait(unsigned &rounds) {
    if (++rounds % 1000 == 0) std::this_thread::yield();
    else __builtin_ia32_pause();
  }

  void push(T *timer) {
    auto &place = places[in++ % places.size()];
    for (unsigned rounds = 0; place.load(std::memory_order_acquire);) wait(rounds);
    place.store(timer, std::memory_order_release);
  }

  T *pop() {
    auto &place = places[out++ % places.size()];
    T *timer;
    for (unsigned rounds = 0; !(timer = place.load(std::memory_order_acquire));) wait(rounds);
    place.store(nullptr, std::memory_order_release);
    return timer;
  }
};

struct Answer {
  double ns;
  uint64_t count, sum;
};

using Sample = std::function<Answer()>;

// A `Peer` is made with the kind of case. It has `Timer`, and
//   add(after), pair(after), push(i, after), pending()        one thread
//   expire(deadlines, took) -> how many                       one thread
//   make() -> Timer *, arm(timer, after), cancel(timer)       any thread
// and `settle()`, called after each batch of operations, timed with them.

template <class Peer>
Sample pairs(const std::string &kind, size_t pending, size_t operations) {
  Random random;
  auto others = random.many(pending, 600, 1200);
  auto pairs = random.many(operations, 600, 1200);
  auto peer = std::make_shared<Peer>(kind);
  for (auto after : others) peer->add(after);
  return [=] {
    uint64_t sum = 0, began = thread_time();
    for (auto after : pairs) peer->pair(after);
    peer->settle();
    uint64_t took = thread_time() - began;
    for (auto after : pairs) sum += after;
    return Answer{double(took) / double(operations), peer->pending(), sum};
  };
}

template <class Peer>
Sample pushes(const std::string &kind, size_t pending, size_t operations) {
  bool equal = kind == "push_equal";
  auto random = std::make_shared<Random>();
  auto deadlines = std::make_shared<std::vector<uint64_t>>(random->many(pending, 600, 1200));
  auto peer = std::make_shared<Peer>(kind);
  for (auto after : *deadlines) peer->add(after);
  auto last = std::make_shared<uint64_t>(1200 * SECOND);
  return [=] {
    std::vector<std::pair<uint32_t, uint64_t>> plan(2 * operations);
    uint64_t sum = 0;
    for (auto &[timer, after] : plan) {
      timer = uint32_t(random->below(pending));
      *last += 100'000;
      auto &deadline = (*deadlines)[timer];
      deadline = equal ? *last : deadline + random->seconds(0, 100);
      sum += after = deadline;
    }
    auto run = [&](size_t from, size_t to) {
      for (size_t i = from; i < to; i++) peer->push(plan[i].first, plan[i].second);
      peer->settle();
    };
    run(0, operations);
    uint64_t began = thread_time();
    run(operations, 2 * operations);
    uint64_t took = thread_time() - began;
    return Answer{double(took) / double(operations), peer->pending(), sum};
  };
}

template <class Peer>
Sample expiry(const std::string &kind, size_t count) {
  Random random;
  std::vector<uint64_t> after(count);
  for (auto &one : after) one = random.below(SECOND);
  return [=] {
    uint64_t sum = 0, took = 0;
    for (auto one : after) sum += one;
    Peer peer(kind);
    uint64_t fired = peer.expire(after, took);
    return Answer{double(took) / double(count), fired, sum};
  };
}

template <class Peer>
Sample own(const std::string &kind, size_t operations) {
  auto after = Random().many(operations, 600, 1200);
  auto peer = std::make_shared<Peer>(kind);
  return [=] {
    auto work = [&] {
      auto *timer = peer->make();
      for (auto one : after) {
        peer->arm(timer, one);
        peer->cancel(timer);
      }
    };
    return Answer{double(both(work, work)) / double(2 * operations), 0, 0};
  };
}

template <class Peer>
Sample crossed(const std::string &kind, size_t operations) {
  using Timer = typename Peer::Timer;
  auto after = Random().many(operations, 600, 1200);
  auto peer = std::make_shared<Peer>(kind);
  auto spares = std::make_shared<Ring<Timer>>();
  for (int i = 0; i < 1024; i++) spares->push(peer->make());
  return [=] {
    Ring<Timer> armed;
    auto arm = [&] {
      for (auto one : after) {
        auto *timer = spares->pop();
        peer->arm(timer, one);
        armed.push(timer);
      }
    };
    auto cancel = [&] {
      for (size_t i = 0; i < operations; i++) {
        auto *timer = armed.pop();
        peer->cancel(timer);
        spares->push(timer);
      }
    };
    return Answer{double(both(arm, cancel)) / double(operations), 0, 0};
  };
}

template <class Peer>
int run(int argc, char **argv) {
  if (argc < 4) fail("usage: KIND PENDING OPERATIONS");
  std::string kind = argv[1];
  size_t pending = std::strtoull(argv[2], nullptr, 10);
  size_t operations = std::strtoull(argv[3], nullptr, 10);
  Sample sample = kind == "pairs"    ? pairs<Peer>(kind, pending, operations)
                  : kind == "expire" ? expiry<Peer>(kind, pending)
                  : kind == "push" || kind == "push_equal"
                      ? pushes<Peer>(kind, pending, operations)
                  : kind == "own" ? own<Peer>(kind, operations)
                                  : crossed<Peer>(kind, operations);
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin)) {
    Answer answer = sample();
    std::printf("%f %llu %llu\n", answer.ns, static_cast<unsigned long long>(answer.count),
                static_cast<unsigned long long>(answer.sum));
    std::fflush(stdout);
  }
  std::_Exit(0);
}

}  // namespace bench
