// A job that is retried with growing pauses, under a deadline for the whole job: two timers in one
// object, which can be destroyed at any time because their destructors wait for their callbacks.
#include <tickless.hpp>

#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

class retry {
 public:
  enum class outcome { open, succeeded, gave_up };

  retry(const tickless::timers &timers, std::function<bool(int)> job, tickless::nanoseconds limit)
      : job_(std::move(job)),
        again_(timers, tickless::precise, attempt{this}),
        limit_(timers, tickless::coarse, give_up{this}) {
    limit_.start(limit);
    again_.start(0ns);
  }

  // So that an attempt which runs at this moment does not start a timer that is being destroyed.
  ~retry() { decide(outcome::gave_up); }

  outcome wait() {
    std::unique_lock lock(mutex_);
    decided_.wait(lock, [&] { return outcome_ != outcome::open; });
    return outcome_;
  }

  int attempts() const { return attempts_; }

 private:
  struct attempt {
    retry *self;
    void operator()(tickless::fired fired) const {
      if (self->job_(++self->attempts_)) return self->decide(outcome::succeeded);
      // By the handle, not fired.restart: the deadline may have cancelled the timer.
      (void)fired;
      std::lock_guard lock(self->mutex_);
      if (self->outcome_ == outcome::open) self->again_.start(1ms * (1 << self->attempts_));
    }
  };

  struct give_up {
    retry *self;
    void operator()(tickless::fired) const { self->decide(outcome::gave_up); }
  };

  void decide(outcome end) {
    std::lock_guard lock(mutex_);
    if (outcome_ == outcome::open) outcome_ = end;
    again_.cancel();
    limit_.cancel();
    decided_.notify_all();
  }

  std::function<bool(int)> job_;
  std::mutex mutex_;
  std::condition_variable decided_;
  outcome outcome_ = outcome::open;
  int attempts_ = 0;
  // Declared last, so destroyed first: their callbacks use the members above.
  tickless::timer<attempt> again_;
  tickless::timer<give_up> limit_;
};

int main() {
  try {
    tickless::timers timers;
    retry third_time(timers, [](int attempt) { return attempt == 3; }, 60s);
    bool is_done = third_time.wait() == retry::outcome::succeeded && third_time.attempts() == 3;
    std::cout << "succeeded at attempt " << third_time.attempts() << '\n';

    retry hopeless(timers, [](int) { return false; }, 20ms);
    is_done = is_done && hopeless.wait() == retry::outcome::gave_up;
    std::cout << "gave up\n";

    retry abandoned(timers, [](int) { return false; }, 60s);
    return is_done ? 0 : 1;
  } catch (const tickless::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
