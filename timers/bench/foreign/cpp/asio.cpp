// Boost.Asio: a heap behind the reactor's lock. A cancelled wait's handler runs too, with an error:
// one thread polls after every 128 operations; between threads, a thread of its own runs the context.
#include <boost/asio.hpp>

#include "bench.hpp"

namespace {

namespace asio = boost::asio;

struct Peer {
  using Timer = asio::steady_timer;
  asio::io_context context;
  std::vector<std::unique_ptr<Timer>> timers;
  Timer spare{context};
  Timer first{context};
  const Timer::time_point made = Timer::clock_type::now();
  unsigned operations = 0;
  static inline uint64_t fired;

  static void fire(const boost::system::error_code &error) {
    if (!error) fired++;
  }

  explicit Peer(const std::string &kind) {
    if (kind == "own" || kind == "crossed") {
      // Earlier than all others, so that none has to wake the thread.
      start(&first, 300 * bench::SECOND);
      std::thread([this] { context.run(); }).detach();
    }
  }

  void start(Timer *timer, uint64_t after) {
    timer->expires_at(made + std::chrono::nanoseconds(after));
    timer->async_wait(fire);
  }

  void add(uint64_t after) {
    timers.push_back(std::make_unique<Timer>(context));
    start(timers.back().get(), after);
  }

  void settle() { context.poll(); }

  void count() {
    if (++operations % 128 == 0) settle();
  }

  void pair(uint64_t after) {
    start(&spare, after);
    spare.cancel();
    count();
  }

  void push(size_t timer, uint64_t after) {
    start(timers[timer].get(), after);
    count();
  }

  // It does not tell. The number of waits that none has ended: each timer has one or none.
  uint64_t pending() {
    settle();
    return timers.size() - fired;
  }

  uint64_t expire(const std::vector<uint64_t> &after, uint64_t &took) {
    fired = 0;
    for (auto one : after) add(one);
    bench::sleep_until(bench::wall_time() + bench::SECOND + 20'000'000);
    uint64_t began = bench::thread_time();
    context.poll();
    took = bench::thread_time() - began;
    return fired;
  }

  Timer *make() { return new Timer(context); }
  void arm(Timer *timer, uint64_t after) { start(timer, after); }
  void cancel(Timer *timer) { timer->cancel(); }
};

}  // namespace

int main(int argc, char **argv) { return bench::run<Peer>(argc, argv); }
