// The C++ classes: chrono, callables, errors as exceptions, destructors that wait, and exceptions
// that leave callbacks.
#include "check.h"
#include "tickless.hpp"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

template <class Body>
static tickless_status_t status_of(Body body) {
  try {
    body();
  } catch (const tickless::error &error) {
    CHECK(std::string(error.what()).size() > 10);
    CHECK(std::string(error.name()).find("TICKLESS_") == 0);
    return error.status();
  }
  return TICKLESS_OK;
}

static void timers_fire(const tickless::timers &timers) {
  std::atomic<int> count{0};
  tickless::timer idle(timers, tickless::coarse, [&](tickless::fired fired) {
    CHECK(fired.late_by() >= 0ns && fired.base() < 2 && fired.overruns() == 0);
    if (++count < 3) fired.restart(1ms);
  });
  idle.start(0ms);
  UNTIL(count == 3);
  idle.start(1h);
  idle.reduce(30min);
  CHECK(idle.is_pending() && idle.is_active());
  CHECK(idle.try_cancel() == tickless::found::pending);
  CHECK(idle.cancel() == tickless::found::idle);
  idle.start_at(timers.now() + 1h);
  CHECK(idle.cancel_single_shot() == tickless::found::pending);
  idle.start_from(timers.now(), 1h);
  CHECK(idle.cancel() == tickless::found::pending);
  IS(TICKLESS_OUT_OF_RANGE, status_of([&] { idle.start(-1ns); }));
  CHECK(idle.shutdown_sync() == tickless::found::idle);
  IS(TICKLESS_SHUT, status_of([&] { idle.start(1ms); }));

  tickless::timer exact(timers, tickless::precise, [&](tickless::fired fired) {
    std::uint64_t missed = fired.forward(1ms);
    if (++count > 10 || missed > 1000000) fired.stop();
  });
  exact.start(0ms, 1ms);
  UNTIL(count > 10);
  exact.start_range(timers.now(), timers.now() + 1ms);
  UNTIL(count > 11);
  IS(TICKLESS_UNSUPPORTED, status_of([&] { exact.reduce(1ms); }));
  exact.start_at(tickless::time_point::min());
  UNTIL(count > 12);
}

// Timers with different callables in one container.
static void timers_of_one_type(const tickless::timers &timers) {
  using any = tickless::timer<tickless::callback<>>;
  std::atomic<int> count{0};
  auto owned = std::make_shared<int>(1);
  {
    std::vector<std::unique_ptr<any>> all;
    all.push_back(std::make_unique<any>(timers, tickless::coarse, [&](tickless::fired) { ++count; }));
    all.push_back(std::make_unique<any>(timers, tickless::precise,
                                        [&count, owned](tickless::fired) { count += *owned; }));
    CHECK(owned.use_count() == 2);
    auto now = timers.now();
    for (auto &timer : all) timer->start_from(now, 1h);
    for (auto &timer : all) CHECK(timer->cancel() == tickless::found::pending);
    for (auto &timer : all) timer->start_from(now, 0s);
    UNTIL(count == 2);
  }
  CHECK(owned.use_count() == 1);
}

static void periods(const tickless::timers &timers) {
  std::atomic<int> count{0};
  auto beat = [&](tickless::fired fired) {
    if (fired.overruns() < 1000000) ++count;
  };
  tickless_periodic_options_t spread{};
  spread.phase = TICKLESS_PHASE_SPREAD;
  tickless::periodic plain(timers, beat), phased(timers, spread, beat);
  plain.start(1ms);
  phased.start(2ms);
  CHECK(!plain.phase_offset() && phased.is_active());
  CHECK(phased.phase_offset() && *phased.phase_offset() < 2ms);
  UNTIL(count > 10);
  plain.start_at(timers.now(), 1ms);
  CHECK(phased.cancel() != tickless::found::idle);
  (void)plain.cancel_sync();
  CHECK(!plain.is_active());
}

// An object that is deleted by the callback of its own timer.
struct connection {
  std::atomic<int> &closed;
  std::string name = "a name that is too long to be kept inside";
  struct on_idle {
    connection *self;
    void operator()(tickless::fired) const { delete self; }
  };
  tickless::timer<on_idle> idle;

  connection(const tickless::timers &timers, std::atomic<int> &count)
      : closed(count), idle(timers, tickless::coarse, on_idle{this}) {}
  ~connection() { ++closed; }
};

static void callbacks_delete_their_timers(const tickless::timers &timers) {
  std::atomic<int> closed{0};
  for (int i = 0; i < 100; i++) (new connection(timers, closed))->idle.start(i % 3 * 1ms);
  UNTIL(closed == 100);
  auto kept = std::make_unique<connection>(timers, closed);
  kept->idle.start(1h);
  kept.reset();
  CHECK(closed == 101);
}

static void destructors_wait() {
  tickless_options_t options{};
  options.bases = 2;
  tickless::timers timers(options), moved(std::move(timers));
  CHECK(timers.get() == nullptr);
  timers = std::move(moved);
  for (int round = 0; round < 50; round++) {
    auto used = std::make_unique<int>(0);
    std::atomic<bool> begun{false};
    {
      tickless::timer work(timers, tickless::precise, [&](tickless::fired) {
        begun = true;
        *used += 1;
      });
      work.start(0ms);
      if (round % 2) UNTIL(begun);
    }
    used.reset();
  }
  CHECK(timers.stats().fired >= 25 && timers.stats(0).bases == 1);
}

static std::atomic<int> handled{0};

static void exceptions_go_to_the_handler(const tickless::timers &timers) {
  tickless::set_exception_handler([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::string &text) {
      if (text == "oops") ++handled;
    }
  });
  tickless::timer broken(timers, tickless::precise,
                         [](tickless::fired) { throw std::string("oops"); });
  broken.start(0ms);
  UNTIL(handled == 1);
  CHECK(tickless::set_exception_handler(nullptr) != nullptr);
}

static void local_timers() {
  tickless::local timers(0ns), local(std::move(timers));
  std::vector<std::string> names{"b", "a"};
  std::string order;
  auto b = local.insert(tickless::coarse, &names[0]);
  auto a = local.insert(tickless::precise, &names[1]);
  CHECK(!local.next_event());
  local.start(b, 5ms);
  local.start_range(a, 1ms, 2ms);
  CHECK(local.is_pending(a) && local.next_event() == 2ms);
  auto fire = [&](tickless::local &inside, tickless_key_t key, void *data) {
    order += *static_cast<std::string *>(data);
    if (order.size() < 3) inside.start(key, 1ms);
  };
  std::size_t fired = 0;
  CHECK(local.size() == 2 && local.pending() == 2 && local.data(a) == &names[1]);
  while (auto next = local.next_event()) fired += local.advance(*next, fire, 1);
  CHECK(fired == 4 && order.substr(0, 2) == "aa");
  local.reserve(100);
  local.start(a, 0ns);
  std::vector<tickless_key_t> due(4);
  CHECK(local.advance_into(1h, due) == 1 && due[0].bits == a.bits);
  CHECK(!local.cancel(a) && local.remove(a) == &names[1]);
  IS(TICKLESS_NO_SUCH_TIMER, status_of([&] { local.start(a, 1ms); }));
  local.adopt();
  tickless::local on_system;
  CHECK(local.now() == 1h && on_system.now() > 0ns);
}

static void local_timers_have_callables() {
  tickless::local_timers set(0ns);
  std::string order;
  std::uint64_t all_missed = 0;
  {
    tickless::local_timer a(set, tickless::precise, [&] { order += 'a'; });
    tickless::local_timer b(set, tickless::coarse, [&] { order += 'b', a.start(1ms); });
    tickless::local_periodic beat(set, [&](std::uint64_t missed) {
      order += '.';
      all_missed += missed;
    });
    CHECK(!set.next_event() && !a.is_pending() && !a.cancel());
    beat.start(10ms);
    b.start(15ms);
    while (set.next_event() && *set.next_event() <= 50ms) set.advance(*set.next_event());
    CHECK(order == "..ba..." || order == ".ba....");
    /* No drift, and missed expiries are counted. */
    CHECK(set.next_event() == 60ms && set.advance(95ms) == 1 && all_missed == 3);
    CHECK(set.next_event() == 100ms && set.advance(100ms) == 1 && all_missed == 3);
    a.start_range(200ms, 300ms);
    CHECK(a.cancel() && beat.cancel() && !set.next_event());
    IS(TICKLESS_OUT_OF_RANGE, status_of([&] { beat.start(0ns); }));
    beat.start(std::chrono::hours::max());
    CHECK(set.advance(set.next_event().value_or(0ns) - 1ns) == 0);
    beat.start(1ms);
  }
  /* Their destructors have removed them. */
  CHECK(!set.next_event() && set.raw().size() == 0);

  /* A callable destroys its timer. */
  tickless::local_timers other(0ns);
  using callable = std::function<void(std::uint64_t)>;
  std::unique_ptr<tickless::local_periodic<callable>> once;
  auto end = [&](std::uint64_t) { once.reset(); };
  once = std::make_unique<tickless::local_periodic<callable>>(other, end);
  once->start(1ms);
  CHECK(other.advance(1h) == 1 && !once && !other.next_event());

  /* A time before that of the last advance counts as that time: the second has missed as many. */
  {
    std::uint64_t counted = 0;
    tickless::local_periodic one(other, [&](std::uint64_t missed) { counted += missed; });
    tickless::local_periodic two(other, [&](std::uint64_t missed) { counted += missed; });
    one.start(1ms);
    two.start(1ms);
    CHECK(other.advance(2h, 1) == 1 && other.advance(0ns, 1) == 1);
    CHECK(counted == 2 * (3'600'000 - 1) && other.next_event() == 2h + 1ms);
  }

  tickless::local_timers on_system;
  bool fired = false;
  tickless::local_timer soon(on_system, tickless::precise, [&] { fired = true; });
  soon.start(1ms);
  UNTIL((on_system.advance(), fired));
  on_system.adopt();
}

static void fixed_timeouts() {
  CHECK(tickless::fixed().now() > 0ns);
  tickless::fixed made(0ns), fixed(std::move(made));
  int fires = 0;
  auto idle = fixed.add_class(10s);
  auto key = fixed.insert(idle, &fires), other = fixed.insert(idle, nullptr);
  CHECK(!fixed.next_event() && fixed.size() == 2 && fixed.pending() == 0);
  fixed.start(key);
  fixed.start(other);
  CHECK(fixed.pending() == 2 && fixed.cancel(other) && !fixed.cancel(other));
  auto fire = [](tickless::fixed &inside, tickless_key_t fired, void *data) {
    if (++*static_cast<int *>(data) < 2) inside.start(fired);
  };
  CHECK(fixed.advance(9s, fire) == 0);
  fixed.scale(idle, 0.5);
  CHECK(fixed.advance(9s, fire) == 1 && fires == 1);
  fixed.set_after(idle, 1s);
  CHECK(fixed.next_event() && fixed.advance(30s, fire) == 1 && fires == 2);
  CHECK(fixed.remove(key) == &fires);
  IS(TICKLESS_NO_SUCH_TIMER, status_of([&] { fixed.start(key); }));
  IS(TICKLESS_OUT_OF_RANGE, status_of([&] { fixed.scale(7, 1.0); }));
  fixed.adopt();
}

static void threads_share_cpu_time(const tickless::timers &timers) {
  tickless::throttle group(timers, 1ms, 10ms);
  std::thread([&] {
    tickless::worker worker(group);
    while (!worker.check()) {
    }
    worker.rest();
  }).join();
  CHECK(group.stats().throttled >= 1 && group.stats().used > 0);
}

// Errors that end the program, each in a child process that has no timers of its parent.
template <class Body>
static void ends_by_abort(Body body) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    std::fclose(stderr);
    body();
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void throw_it(tickless_fired_t *, void *) { throw 1; }

static void errors_end_the_program() {
  ends_by_abort([] {
    // A callback of the C interface: the library ends the process when an exception leaves it.
    tickless::timers timers;
    tickless_timer_t timer{};
    OK(tickless_timer_init(&timer, timers.get(), TICKLESS_PRECISE, throw_it, nullptr));
    OK(tickless_timer_start(&timer, 0));
    sleep(60);
  });
  ends_by_abort([] {
    tickless::timers timers;
    tickless::timer timer(timers, tickless::precise, [](tickless::fired) { throw 1; });
    timer.start(0ms);
    sleep(60);
  });
  ends_by_abort([] {
    auto timers = std::make_unique<tickless::timers>();
    tickless::timer timer(*timers, tickless::coarse, [](tickless::fired) {});
    timers.reset();
  });
}

/* Virtual time passes hours without waiting, and wall-clock time is set. */
static void virtual_time_advances() {
  tickless::virtual_timers timers;
  int count = 0, rang = 0;
  tickless::timer hourly(timers, tickless::precise, [&](tickless::fired fired) {
    CHECK(fired.now() == fired.deadline());
    if (++count < 2) fired.restart(1h);
    if (count == 2) fired.restart_range(fired.deadline() + 1h, fired.deadline() + 1h);
  });
  hourly.label("hourly");
  tickless::periodic beat(timers, [](tickless::fired) {});
  beat.label("beat");
  beat.start(100h);
  CHECK(timers.list().find("beat") != std::string::npos);
  (void)beat.cancel();
  hourly.start(1h);
  CHECK(timers.list().find("hourly") != std::string::npos);
  CHECK(timers.next_event() == timers.now() + 1h);
  timers.advance(59min);
  CHECK(count == 0 && timers.advance_to_next() && count == 1);
  timers.advance_to(timers.now() + 24h);
  CHECK(count == 3 && !timers.advance_to_next() && !timers.next_event());

  tickless::clock_timer alarm(timers, TICKLESS_CLOCK_REALTIME,
                              [&](tickless::clock_fired fired) {
                                rang++;
                                CHECK(fired.forward(24h) == 0);
                                fired.restart_at(fired.deadline() + 24h);
                              });
  auto noon = timers.now_on(TICKLESS_CLOCK_REALTIME) + 12h;
  alarm.start_at(noon);
  timers.set_realtime(noon - 1min);
  timers.advance(1min);
  CHECK(rang == 1 && alarm.is_pending() && alarm.cancel() == tickless::found::pending);
  alarm.start(1s);
  timers.suspend(1h);
  CHECK(rang == 1 && alarm.cancel_sync() == tickless::found::pending);

  tickless::limiter limiter(timers, 2, 1s, 1);
  CHECK(limiter.retry_after() == 0ns && limiter.available() == 2);
  CHECK(limiter.try_acquire(2) && !limiter.try_acquire());
  auto after = limiter.retry_after();
  CHECK(after > 0ns && after <= 1s && limiter.stats().used == 2);
  CHECK(status_of([&] { (void)limiter.try_acquire(4); }) == TICKLESS_OUT_OF_RANGE);
  timers.advance(5s);
  CHECK(limiter.try_acquire(3));

  tickless::keyed keyed(timers, 1, 1s);
  CHECK(keyed.try_acquire("alice") && !keyed.try_acquire("alice") && keyed.try_acquire("bob"));
  CHECK(keyed.retry_after("alice") == 1s && keyed.retry_after("carol") == 0ns);
  CHECK(keyed.count() == 2);
  timers.advance(1s);
  CHECK(keyed.forget_idle() == 0 && keyed.try_acquire("alice"));
}

static void a_loop_drives_timers() {
  tickless_options_t options{};
  options.tick_ns = 100000;
  tickless::loop_timers loop(options);
  int count = 0;
  tickless::timer timer(loop.set(), tickless::precise, [&](tickless::fired) {
    count++;
    CHECK(status_of([&] { loop.run(); }) == TICKLESS_BUSY);
  });
  CHECK(!loop.timeout() && loop.fd() >= 0 && loop.run() == 0);
  timer.start(1ms);
  while (count == 0) {
    CHECK(count || loop.timeout() <= 1ms);
    loop.run();
  }
  tickless::limiter limiter(loop.set(), 1, 1h);
  limiter.acquire();
  /* Runs in a thread of its own, whose end frees what the standard library keeps for a thread that
   * has waited. */
  std::thread([&] { CHECK(!limiter.acquire_for(0s)); }).join();

  /* One thread may wait, so the next one does not. */
  tickless_quota_t quota{};
  quota.quota = 1;
  quota.period_ns = 3600 * SECOND;
  quota.waiting_max = 1;
  tickless::limiter bounded(loop.set(), quota);
  bounded.acquire();
  std::thread waits([&] { CHECK(status_of([&] { bounded.acquire(); }) == TICKLESS_SHUT); });
  UNTIL(bounded.stats().waiting == 1);
  std::thread([&] {
    CHECK(status_of([&] { bounded.acquire(); }) == TICKLESS_EMPTY);
    CHECK(!bounded.acquire_for(1h));
  }).join();
  bounded.close();
  waits.join();
}

/* Durations of all units, of which the longest saturate. */
static void durations_saturate() {
  using namespace std::chrono;
  tickless::virtual_timers timers(0ns);
  tickless::timer timer(timers, tickless::precise, [](tickless::fired) {});
  auto fires = [&](tickless::duration after) {
    timer.start(after);
    return timers.next_event()->time_since_epoch();
  };
  CHECK(fires(hours(2562047)) == hours(2562047));
  CHECK(fires(duration<std::int64_t, std::pico>(1001)) == 2ns);
  CHECK(fires(duration<double>(1.5)) == 1500ms);
  CHECK(fires(duration<unsigned, std::ratio<1, 30>>(15)) == 500ms && fires(nanoseconds(7)) == 7ns);
  CHECK(fires(hours(2562048)) == nanoseconds::max() && fires(hours(5124096)) == nanoseconds::max());
  CHECK(fires(hours::max()) == nanoseconds::max() && fires(seconds::max()) == nanoseconds::max());
  CHECK(fires(nanoseconds::max()) == nanoseconds::max());
  CHECK(fires(duration<std::uint64_t>(UINT64_MAX)) == nanoseconds::max());
  CHECK(fires(duration<float, std::milli>(1e30F)) == nanoseconds::max());
  std::error_code failed;
  auto is_refused = [&](tickless::duration after) {
    timer.start(after, failed);
    return failed == tickless::code(TICKLESS_OUT_OF_RANGE);
  };
  CHECK(is_refused(hours::min()) && is_refused(nanoseconds(-1)));
  CHECK(is_refused(duration<double>(std::numeric_limits<double>::quiet_NaN())));
  CHECK(failed.message() == "TICKLESS_OUT_OF_RANGE");
  timer.start(1s, failed);
  CHECK(!failed && timer.cancel_sync(failed) == tickless::found::pending && !failed);
}

/* Points in time of steady clocks, and the library's own clock as one of the standard's. */
static void timers_fire_at_points_of_clocks(const tickless::timers &timers) {
  auto begun = tickless::clock::now();
  CHECK(timers.now() - begun < 1s && begun - timers.now() < 1s);
  std::atomic<int> fired{0};
  tickless::timer timer(timers, tickless::precise, [&](tickless::fired) { fired++; });
  auto at = std::chrono::steady_clock::now() + 5ms;
  timer.start_at(at);
  UNTIL(fired == 1);
  CHECK(std::chrono::steady_clock::now() >= at);
  timer.start_at(std::chrono::steady_clock::time_point::min());
  UNTIL(fired == 2);
  std::error_code failed;
  timer.start_at(tickless::clock::now() + 1h, failed);
  CHECK(!failed && timer.is_pending());
  timer.start_at(std::chrono::steady_clock::time_point::max());
  CHECK(timer.is_pending());
}

/* A list has its end, although other threads arm timers and time passes. */
static void lists_are_whole() {
  tickless_options_t one{};
  one.bases = 1;
  tickless::timers timers(one);
  CHECK(timers.list().find("the last") == std::string::npos);
  tickless::timer last(timers, tickless::precise, [](tickless::fired) {});
  tickless::clock_timer wall(timers, TICKLESS_CLOCK_REALTIME, [](tickless::clock_fired) {});
  last.start(1000h);
  wall.start(1h);
  CHECK(timers.list().find("a C timer") != std::string::npos);
  CHECK(timers.list().find("a C clock timer") != std::string::npos);
  last.label("the last");
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      tickless::timer more(timers, tickless::precise, [](tickless::fired) {});
      more.start(1h);
    }
  });
  for (int round = 0; round < 2000; round++) {
    std::string list = timers.list();
    CHECK(list.size() > 8 && list.find("the last", list.size() - 12) != std::string::npos);
  }
  done = true;
  other.join();
}

int main() {
  CHECK(std::string(tickless::version()).size() >= 5);
  errors_end_the_program();
  tickless_options_t options{};
  options.bases = 2;
  tickless::timers timers(options);
  timers_fire(timers);
  timers_of_one_type(timers);
  periods(timers);
  callbacks_delete_their_timers(timers);
  destructors_wait();
  exceptions_go_to_the_handler(timers);
  local_timers();
  local_timers_have_callables();
  fixed_timeouts();
  threads_share_cpu_time(timers);
  durations_saturate();
  timers_fire_at_points_of_clocks(timers);
  lists_are_whole();
  virtual_time_advances();
  a_loop_drives_timers();
  return 0;
}
