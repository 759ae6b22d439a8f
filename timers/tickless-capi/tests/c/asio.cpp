/* tickless/asio.hpp, with Boost's Asio, or the standalone one under -DASIO_STANDALONE. */
#include <tickless/asio.hpp>

#include <functional>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "check.h"

namespace net = tickless::detail::net;
using error_code = tickless::detail::net_error;
using namespace std::chrono_literals;

static bool is_aborted(error_code failed) { return failed == net::error::operation_aborted; }

/* A wait ends no earlier than its expiry, and keeps `run` until then. */
static void ends_in_time(const tickless::timers &set) {
  net::io_context io;
  tickless::asio_timer timer(io, set);
  auto begun = std::chrono::steady_clock::now();
  std::vector<int> order;
  timer.expires_after(5ms);
  timer.async_wait([&](error_code failed) {
    CHECK(!failed);
    order.push_back(1);
  });
  timer.async_wait([&](error_code failed) {
    CHECK(!failed);
    order.push_back(2);
  });
  CHECK(order.empty());
  io.run();
  CHECK((order == std::vector<int>{1, 2}));
  CHECK(std::chrono::steady_clock::now() - begun >= 5ms);

  /* An expiry that has passed, or a negative duration: at once, but not in the call. */
  timer.async_wait([&](error_code failed) {
    CHECK(!failed);
    order.push_back(3);
  });
  CHECK(order.size() == 2);
  io.restart();
  io.run();
  timer.expires_after(-1h);
  timer.async_wait([&](error_code failed) {
    CHECK(!failed);
    order.push_back(4);
  });
  io.restart();
  io.run();
  CHECK(order.size() == 4);
  timer.expires_after(std::chrono::hours::max());
  CHECK(timer.expiry() == tickless::time_point::max());
}

static void is_cancelled(const tickless::timers &set) {
  net::io_context io;
  unsigned aborted = 0, done = 0;
  auto count = [&](error_code failed) { ++(is_aborted(failed) ? aborted : done); };
  auto timer = std::make_unique<tickless::asio_timer>(io, set);
  CHECK(timer->cancel() == 0);
  timer->expires_after(1h);
  timer->async_wait(count);
  timer->async_wait(count);
  CHECK(timer->cancel_one() == 1 && timer->cancel() == 1);
  CHECK(aborted == 0);
  timer->async_wait(count);
  CHECK(timer->expires_after(1h) == 1);
  timer->async_wait(count);
  timer.reset();
  io.run();
  CHECK(aborted == 4 && done == 0);

  /* A timer that moves takes its wait along; one that is assigned to loses its own. */
  tickless::asio_timer first(io, set), second(io, set);
  first.expires_after(1ms);
  second.expires_after(1h);
  first.async_wait(count);
  second.async_wait(count);
  second = std::move(first);
  tickless::asio_timer third(std::move(second));
  io.restart();
  io.run();
  CHECK(aborted == 5 && done == 1);
}

/* Handlers run where their executor says; another thread cancels through it. */
static void respects_executors(const tickless::timers &set) {
  net::io_context io;
  auto strand = net::make_strand(io);
  tickless::basic_asio_timer<decltype(strand)> timer(strand, set);
  unsigned ended = 0;
  auto in_strand = [&](error_code) {
    CHECK(strand.running_in_this_thread());
    ended++;
  };
  timer.expires_after(1ms);
  timer.async_wait(in_strand);
  tickless::asio_timer other(io, set);
  other.expires_after(2ms);
  other.async_wait(net::bind_executor(strand, in_strand));
  std::thread runs([&] { io.run(); });
  io.run();
  runs.join();
  CHECK(ended == 2);

  io.restart();
  timer.expires_after(1h);
  timer.async_wait([&](error_code failed) {
    CHECK(is_aborted(failed));
    ended++;
  });
  std::thread more([&] { io.run(); });
  std::thread cancels([&] { net::post(strand, [&] {
    CHECK(timer.cancel() == 1); }); });
  cancels.join();
  more.join();
  CHECK(ended == 3);
}

/* Counts the copies of itself that are alive. */
struct alive {
  explicit alive(std::shared_ptr<int> token) : token_(std::move(token)) {}
  std::shared_ptr<int> token_;
};

/* A context that is stopped or destroyed drops waits, calls nothing, and leaks nothing. */
static void ends_with_its_context(const tickless::timers &set) {
  auto token = std::make_shared<int>(0);
  bool called = false;
  for (tickless::nanoseconds after : {0ns, 20000ns, 3600000000000ns}) {
    for (int turn = 0; turn < 50; turn++) {
      net::io_context io;
      auto timer = std::make_shared<tickless::asio_timer>(io, set);
      timer->expires_after(after);
      /* The handler owns its timer. */
      timer->async_wait([timer, kept = alive(token), &called](error_code) { called = true; });
      if (turn % 2) io.stop();
      if (turn % 3) std::this_thread::sleep_for(10us);
    }
  }
  CHECK(token.use_count() == 1 && !called);
}

static net::awaitable<void> beats(const tickless::timers &set, unsigned &count, alive) {
  tickless::asio_timer timer(co_await net::this_coro::executor, set);
  for (;;) {
    timer.expires_after(1ms);
    co_await timer.async_wait(net::use_awaitable);
    count++;
  }
}

static void takes_every_token(const tickless::timers &set) {
  auto token = std::make_shared<int>(0);
  unsigned count = 0;
  {
    net::io_context io;
    net::co_spawn(io, beats(set, count, alive(token)), net::detached);
    while (count < 3) io.run_one();
  }
  CHECK(token.use_count() == 1);

  net::io_context io;
  tickless::asio_timer timer(io, set);
  timer.expires_after(1ms);
  auto future = timer.async_wait(net::use_future);
  io.run();
  future.get();

  using default_timer = net::use_awaitable_t<>::as_default_on_t<tickless::asio_timer>;
  bool done = false;
  auto waits = [&]() -> net::awaitable<void> {
    default_timer own(co_await net::this_coro::executor, set);
    own.expires_after(1ms);
    co_await own.async_wait();
    done = true;
  };
  net::co_spawn(io, waits(), net::detached);
  io.restart();
  io.run();
  CHECK(done);
}

#if TICKLESS_ASIO_VERSION >= 101900
static void cancels_one_operation() {
  tickless::virtual_timers set(0ns);
  net::io_context io;
  net::cancellation_signal one, late;
  unsigned aborted = 0, done = 0;
  auto count = [&](error_code failed) { ++(is_aborted(failed) ? aborted : done); };
  {
    tickless::asio_timer timer(io, set);
    timer.expires_after(1h);
    timer.async_wait(net::bind_cancellation_slot(one.slot(), count));
    timer.async_wait(net::bind_cancellation_slot(late.slot(), count));
    timer.async_wait(count);
    one.emit(net::cancellation_type::all);
    one.emit(net::cancellation_type::all);
    io.poll();
    CHECK(aborted == 1 && done == 0);
    set.advance(1h);
    io.run();
    CHECK(aborted == 1 && done == 2);
    late.emit(net::cancellation_type::all);
  }
  late.emit(net::cancellation_type::all);
  io.restart();
  io.run();
  CHECK(aborted == 1 && done == 2);
}
#endif

/* An expiry that moves while the old one fires never ends a wait early. */
static void is_never_early(const tickless::timers &set) {
  net::io_context io;
  tickless::asio_timer timer(io, set);
  unsigned ended = 0, begun = 0;
  for (int turn = 0; turn < 2000; turn++) {
    timer.expires_after(std::chrono::microseconds(turn % 100));
    auto count = [&](error_code) { ended++; };
    timer.async_wait(count), begun++;
    if (turn % 4) std::this_thread::sleep_for(std::chrono::microseconds(turn % 60));
    timer.expires_after(turn % 16 ? tickless::nanoseconds(1h) : tickless::nanoseconds(200us));
    auto expiry = timer.expiry();
    timer.async_wait([&, expiry](error_code failed) {
      CHECK(failed || set.now() >= expiry);
      CHECK(failed || turn % 16 == 0);
      ended++;
    });
    begun++;
    io.restart();
    if (turn % 16) io.poll(), timer.cancel();
    io.run();
    CHECK(ended == begun);
  }
}

/* Random calls on many timers from two threads, each timer in its strand: each wait ends once. */
static void random_calls(const tickless::timers &set, unsigned seed) {
  using strand_t = net::strand<net::io_context::executor_type>;
  struct user {
    tickless::basic_asio_timer<strand_t> timer;
    std::mt19937 random;
    unsigned begun = 0, ended = 0, left = 300;
  };
  net::io_context io;
  std::vector<std::unique_ptr<user>> users;
  std::function<void(user *)> step = [&](user *of) {
    if (of->left-- == 0) return void(of->timer.cancel());
    switch (of->random() % 5) {
      case 0: of->timer.expires_after(std::chrono::microseconds(of->random() % 300)); break;
      case 1: of->timer.cancel(); break;
      case 2: of->timer.cancel_one(); break;
      case 3: {
        auto moved = std::move(of->timer);
        of->timer = std::move(moved);
        break;
      }
      default:
        of->begun++;
        of->timer.async_wait([of](error_code) { of->ended++; });
    }
    net::post(of->timer.get_executor(), [&step, of] { step(of); });
  };
  for (unsigned i = 0; i < 20; i++) {
    auto *of = new user{{net::make_strand(io), set}, std::mt19937(seed + i)};
    users.emplace_back(of);
    net::post(of->timer.get_executor(), [&step, of] { step(of); });
  }
  std::thread other([&] { io.run(); });
  io.run();
  other.join();
  for (auto &one : users) CHECK(one->begun > 0 && one->begun == one->ended);
}

/* An hour of virtual time. */
static void follows_a_virtual_clock() {
  tickless::virtual_timers set(0ns);
  net::io_context io;
  tickless::asio_timer timer(io, set);
  bool done = false;
  timer.expires_after(1h);
  timer.async_wait([&](error_code failed) { done = !failed; });
  set.advance(59min);
  io.poll();
  CHECK(!done);
  set.advance(1min);
  io.poll();
  CHECK(done);
}

int main() {
  tickless::timers set;
  ends_in_time(set);
  is_cancelled(set);
  respects_executors(set);
  ends_with_its_context(set);
  takes_every_token(set);
#if TICKLESS_ASIO_VERSION >= 101900
  cancels_one_operation();
#endif
  is_never_early(set);
  random_calls(set, 1);
  follows_a_virtual_clock();
  return 0;
}
