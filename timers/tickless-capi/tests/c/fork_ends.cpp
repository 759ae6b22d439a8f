// Children of a fork end in every way a process ends, with objects of the parent in statics, in a
// thread-local and on other threads' stacks, while those threads use them. Nothing waits, and no
// destructor ends the child.
#include "check.h"
#include "tickless.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

static std::atomic<bool> done{false};

static void nothing(tickless::fired) {}

/* Everything that a set of timers has, and what belongs to one thread. */
struct objects {
  tickless::timers timers;
  tickless::virtual_timers time;
  tickless::loop_timers loop;
  tickless::timer<void (*)(tickless::fired)> timer{timers, tickless::coarse, nothing};
  tickless::timer<void (*)(tickless::fired)> virtual_timer{time, tickless::precise, nothing};
  tickless::timer<void (*)(tickless::fired)> loop_timer{loop.set(), tickless::coarse, nothing};
  tickless::periodic<void (*)(tickless::fired)> heart{timers, nothing};
  tickless::clock_timer<void (*)(tickless::clock_fired)> clock{
      timers, TICKLESS_CLOCK_REALTIME, [](tickless::clock_fired) {}};
  tickless::limiter limiter{timers, 10, 1ms};
  tickless::keyed keyed{timers, 10, 1ms};
  tickless::throttle throttle{timers, 1ms, 10ms};
  tickless::worker worker{throttle};
  tickless::local local{0ns};
  tickless::fixed fixed{0ns};
};

static objects *all;
thread_local std::unique_ptr<objects> of_thread;
/* Statics that are destroyed by `exit`: what `all` points to, and a set whose timers other threads
 * own. */
static std::unique_ptr<objects> owner_of_all;
static std::unique_ptr<tickless::timers> shared;

/* Uses the objects as other threads than main may. */
static void use() {
  tickless::timer mine(*shared, tickless::precise, nothing);
  for (int round = 0; !done; round++) {
    tickless::timer shortly(*shared, tickless::coarse, nothing);
    tickless::limiter limiter(*shared, 10, 1ms);
    tickless::clock_timer wall(*shared, TICKLESS_CLOCK_REALTIME, [](tickless::clock_fired) {});
    tickless::periodic often(*shared, nothing);
    wall.start(1h);
    often.start(1ms);
    mine.start(1ms);
    shortly.start(1s);
    all->timer.start(1s);
    all->heart.start(1ms);
    all->clock.start(1ms);
    (void)all->limiter.try_acquire();
    (void)limiter.acquire_for(2ms, 10);
    (void)all->keyed.try_acquire(std::to_string(round % 1000));
    if (round % 64 == 0) (void)all->keyed.forget_idle();
    all->time.advance(1ms);
    all->virtual_timer.start(1ms);
    tickless::worker worker(all->throttle);
    (void)worker.check();
    (void)shared->list();
  }
}

/* The ways in which a child ends. In the last one it destroys sets of its parent. */
constexpr int ways = 5;

/* Ends the child, which has objects of its own besides, in one of these ways. */
static void with_own_timers(int way) {
  static std::unique_ptr<tickless::timers> own;
  static std::unique_ptr<tickless::timer<std::function<void(tickless::fired)>>> timer;
  static std::atomic<bool> fired{false};
  tickless_options_t one{};
  one.bases = 1;
  own = std::make_unique<tickless::timers>(one);
  timer = std::make_unique<tickless::timer<std::function<void(tickless::fired)>>>(
      *own, tickless::precise, [](tickless::fired) { fired = true; });
  timer->start(1ms);
  UNTIL(fired);
  timer.reset();
  own.reset();
  if (way == 0) exit(0);
  if (way == 1) _exit(0);
  if (way == 2) quick_exit(0);
  if (way == 3) _exit(execlp("true", "true", nullptr));
  /* Like the end of main: of a thread-local, then of the statics. */
  of_thread.reset();
  owner_of_all.reset();
  shared.reset();
  _exit(0);
}

static void expect_end(pid_t pid) {
  int status;
  for (int tries = 0; waitpid(pid, &status, WNOHANG) == 0; tries++) {
    if (tries == 30000) {
      kill(pid, SIGKILL);
      CHECK(!"the child hangs");
    }
    sleep_ms(1);
  }
  CHECK(status == 0);
}

static pid_t vforked() {
  pid_t pid = vfork();
  if (pid == 0) _exit(0);
  return pid;
}

/* Forks as often as `rounds`; each child ends in another way. */
static void fork_often(int rounds) {
  for (int round = 0; round < rounds; round++) {
    pid_t pid = fork();
    if (pid == 0) with_own_timers(round % ways);
    CHECK(pid > 0);
    expect_end(pid);
    expect_end(vforked());
    char name[] = "true";
    char *arguments[] = {name, nullptr};
    CHECK(posix_spawnp(&pid, name, nullptr, nullptr, arguments, environ) == 0);
    expect_end(pid);
  }
}

int main(int count, char **arguments) {
  int rounds = count > 1 ? atoi(arguments[1]) : 30;
  owner_of_all = std::make_unique<objects>();
  of_thread = std::make_unique<objects>();
  shared = std::make_unique<tickless::timers>();
  all = owner_of_all.get();
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; number++) threads.emplace_back(use);
  /* From main, which owns the objects of one thread, and from a thread that does not. */
  fork_often(rounds / 2);
  std::thread(fork_often, rounds / 2).join();
  /* Inside callbacks, which do not return in the child: of each kind, it ends in each way. */
  std::atomic<int> forked{0};
  auto ends = [&] {
    pid_t pid = fork();
    if (pid == 0) with_own_timers(forked % ways);
    expect_end(pid);
    forked++;
  };
  auto in_callback = [&](tickless::fired) { ends(); };
  tickless::timer precise(*shared, tickless::precise, in_callback);
  tickless::timer coarse(*shared, tickless::coarse, in_callback);
  tickless::periodic often(*shared, in_callback);
  tickless::clock_timer wall(*shared, TICKLESS_CLOCK_REALTIME,
                             [&](tickless::clock_fired) { ends(); });
  for (int way = 1; way <= ways; way++) {
    precise.start(0ms);
    UNTIL(forked == way);
  }
  for (int way = 1; way <= ways; way++) {
    coarse.start(0ms);
    UNTIL(forked == ways + way);
  }
  often.start(1ms);
  UNTIL(forked >= 3 * ways);
  (void)often.cancel_sync();
  forked = 0;
  for (int way = 1; way <= ways; way++) {
    wall.start(0ms);
    UNTIL(forked == way);
  }
  /* Destroying a loop or local timers inside of their own callback is an error everywhere. */
  forked = 0;
  tickless::timer in_loop(all->loop.set(), tickless::coarse, in_callback);
  for (int way = 1; way < ways; way++) {
    in_loop.start(0ms);
    UNTIL((static_cast<void>(all->loop.run()), forked == way));
  }
  done = true;
  for (auto &thread : threads) thread.join();
  forked = 0;
  tickless::timer in_time(all->time, tickless::coarse, in_callback);
  tickless_key_t key = all->local.insert(tickless::coarse, nullptr);
  for (int way = 1; way < ways; way++) {
    in_time.start(1ms);
    all->time.advance(1s);
  }
  forked = 0;
  for (int way = 1; way < ways; way++) {
    all->local.start(key, 1ms);
    all->local.advance(std::chrono::seconds(2 * way),
                       [&](tickless::local &, tickless_key_t, void *) { ends(); });
  }
  CHECK(forked == ways - 1);
  return 0;
}
