// Timers of one thread in libevent's loop: idle timeouts of connections, and a periodic timer.
//
// One event of libevent's waits for the earliest timer. It is set once in each turn of the loop,
// however many timers were armed in it. A loop with hooks for each turn needs no loop of its own:
// in libev an ev_prepare sets an ev_timer, in libuv a uv_prepare_t sets a uv_timer_t.
//
// c++ -std=c++17 libevent_local.cpp $(pkg-config --cflags --libs tickless libevent)
#include <tickless.hpp>

#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using namespace std::chrono_literals;

static void must(bool is_so, const char *what) {
  if (is_so) return;
  std::perror(what);
  std::exit(1);
}

// The timers of a loop.
class loop {
 public:
  loop() : base_(event_base_new()) {
    must(base_ != nullptr, "event_base_new");
    auto advance = [](evutil_socket_t, short, void *self) {
      static_cast<loop *>(self)->timers.advance();
    };
    due_ = evtimer_new(base_, advance, this);
    must(due_ != nullptr, "evtimer_new");
  }
  ~loop() {
    event_free(due_);
    event_base_free(base_);
  }

  void turn() {
    if (auto next = timers.next_event()) {
      // Rounded up: a loop that wakes too early would turn once more for nothing.
      auto left = std::max(*next - timers.now(), tickless::nanoseconds(0)) + 999ns;
      auto us = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
      timeval wait{us / 1000000, us % 1000000};
      must(evtimer_add(due_, &wait) == 0, "evtimer_add");
    } else {
      must(evtimer_del(due_) == 0, "evtimer_del");
    }
    must(event_base_loop(base_, EVLOOP_ONCE) >= 0, "event_base_loop");
  }
  event_base *base() const { return base_; }

  tickless::local_timers timers;

 private:
  event_base *base_;
  event *due_;
};

// A connection that ends when nothing has been received for 20 ms.
class connection {
 public:
  explicit connection(loop &of) : idle_(of.timers, tickless::coarse, close_when_idle{this}) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0, "socketpair");
    auto received = [](evutil_socket_t socket, short, void *self) {
      char bytes[64];
      if (read(socket, bytes, sizeof bytes) > 0) static_cast<connection *>(self)->idle_.start(20ms);
    };
    readable_ = event_new(of.base(), ends_[0], EV_READ | EV_PERSIST, received, this);
    must(readable_ && event_add(readable_, nullptr) == 0, "event_add");
    idle_.start(20ms);
  }
  ~connection() {
    event_free(readable_);
    close(ends_[0]);
    close(ends_[1]);
  }

  void send() { must(write(ends_[1], "x", 1) == 1, "write"); }
  bool is_open() const { return is_open_; }

 private:
  struct close_when_idle {
    connection *self;
    void operator()() const { self->is_open_ = false; }
  };

  tickless::local_timer<close_when_idle> idle_;
  event *readable_;
  int ends_[2];
  bool is_open_ = true;
};

int main() {
  loop events;
  std::vector<std::unique_ptr<connection>> all;
  unsigned beats = 0;
  tickless::local_periodic beat(events.timers, [&](std::uint64_t missed) {
    beats += 1 + static_cast<unsigned>(missed);
    if (beats < 20 && all[0]->is_open()) all[0]->send();
  });
  beat.start(5ms);
  for (int i = 0; i < 3; i++) all.push_back(std::make_unique<connection>(events));
  while (all[1]->is_open() || all[2]->is_open()) events.turn();
  bool is_right = beats >= 4;
  while (all[0]->is_open()) events.turn();
  std::printf("%u beats until the last connection was idle\n", beats);
  return is_right ? 0 : 1;
}
