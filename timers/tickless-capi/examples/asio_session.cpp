// Timers of Tickless in Asio: a session with an idle timeout, and a coroutine that beats.
//
// c++ -std=c++20 asio_session.cpp $(pkg-config --cflags --libs tickless)
// The same program with the standalone Asio: -DASIO_STANDALONE
#include <tickless/asio.hpp>

#include <iostream>

#ifndef ASIO_STANDALONE
namespace asio = boost::asio;
#endif
using namespace std::chrono_literals;

// Receives until nothing has come for 20 ms.
class session {
 public:
  session(asio::io_context &io, const tickless::timers &timers)
      : idle_(io, timers, tickless::coarse) {
    received();
  }
  void received() {
    idle_.expires_after(20ms);  // cancels the pending wait
    idle_.async_wait([this](auto failed) {
      if (!failed) is_open_ = false;
    });
  }
  bool is_open() const { return is_open_; }

 private:
  tickless::asio_timer idle_;
  bool is_open_ = true;
};

static asio::awaitable<void> feed(session &of, const tickless::timers &timers, int &beats) {
  tickless::asio_timer timer(co_await asio::this_coro::executor, timers);
  for (beats = 0; beats < 10 && of.is_open(); beats++) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
    of.received();
  }
}

int main() {
  tickless::timers timers;
  asio::io_context io;
  session one(io, timers);
  int beats = 0;
  asio::co_spawn(io, feed(one, timers, beats), asio::detached);
  io.run();
  std::cout << beats << " beats, then idle\n";
  return one.is_open() ? 1 : 0;
}
