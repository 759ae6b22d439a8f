/*
 * Tickless for C++17: tickless.h with owning classes, std::chrono and callables. Header only.
 *
 *   tickless::timers timers;
 *   tickless::timer idle(timers, tickless::coarse, [&](tickless::fired) { connection.close(); });
 *   idle.start(30s);   // arm, or push out
 *
 * Memory. A timer contains its C timer and its callable and allocates nothing. It can therefore
 * neither be moved nor copied; create it where it stays, or behind a unique_ptr. `timers` and
 * `local` can be moved; a moved-from object may only be destroyed or assigned to.
 *
 * Destruction. The destructor of a timer waits until its callback has returned, as
 * tickless_timer_destroy does; afterwards the objects that the callback uses can be destroyed. A
 * callback may destroy its own timer as its last statement; this also destroys its captures.
 * A destructor that would never return, or that of a `timers` which still has timers, prints a line
 * to stderr and calls std::terminate.
 *
 * Errors. Where the C function returns an error, the method throws tickless::error. A cancel that
 * would never return also throws, after it has cancelled the timer: see cancel_sync.
 *
 * Exceptions that leave a callback never reach the library: they are passed to the handler of
 * set_exception_handler, or to std::terminate if there is none.
 *
 * Threads, blocking, and undefined behaviour: as in tickless.h.
 */
#ifndef TICKLESS_HPP
#define TICKLESS_HPP

#include "tickless.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tickless {

using std::chrono::nanoseconds;

/* The clock of the timers; timers::now reads it. */
struct clock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<clock>;
  static constexpr bool is_steady = true;
};
using time_point = clock::time_point;

/* Kinds of timers. Combine them with further flags of tickless.h by `|`. */
inline constexpr std::uint32_t coarse = TICKLESS_COARSE;
inline constexpr std::uint32_t precise = TICKLESS_PRECISE;

/* The state in which a cancel found a timer. */
enum class found { idle, pending, running };

/* A failed call; what() describes the cause and the remedy. */
class error : public std::runtime_error {
 public:
  explicit error(tickless_status_t status)
      : std::runtime_error(tickless_error_text()), status_(status) {}
  tickless_status_t status() const noexcept { return status_; }

 private:
  tickless_status_t status_;
};

using exception_handler = void (*)(std::exception_ptr);

namespace detail {

inline std::atomic<exception_handler> handler{nullptr};

inline void check(tickless_status_t status) {
  if (status != TICKLESS_OK) throw error(status);
}

/* Ends the program after an error in a destructor, which cannot report it. */
inline void must(tickless_status_t status, const char *what) noexcept {
  if (status == TICKLESS_OK) return;
  std::fprintf(stderr, "tickless: %s: %s\n", what, tickless_error_text());
  std::terminate();
}

inline void uncaught() noexcept {
  if (exception_handler handle = handler.load()) return handle(std::current_exception());
  std::terminate();
}

inline std::uint64_t since_start(time_point at) {
  /* A time before the start of the clock has passed. */
  auto ns = at.time_since_epoch().count();
  return ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
}

inline found of(tickless_cancel_t cancel) noexcept {
  switch (cancel) {
    case TICKLESS_CANCEL_PENDING:
      return found::pending;
    case TICKLESS_CANCEL_RUNNING:
      return found::running;
    case TICKLESS_CANCEL_IDLE:
      break;
  }
  return found::idle;
}

/* Converts a point in time from the library; none for TICKLESS_NEVER. */
inline std::optional<nanoseconds> unless_never(std::uint64_t ns) {
  if (ns == TICKLESS_NEVER) return std::nullopt;
  return nanoseconds(static_cast<nanoseconds::rep>(ns));
}

}  // namespace detail

/* Sets the handler for exceptions that leave a callback, and returns the previous one. Null removes
 * it. The handler runs on the callback's thread; an exception that leaves it ends the program. */
inline exception_handler set_exception_handler(exception_handler handler) noexcept {
  return detail::handler.exchange(handler);
}

/* An expiry, as its callback sees it; valid until the callback returns. */
class fired {
 public:
  explicit fired(tickless_fired_t *raw) noexcept : raw_(raw) {}

  time_point deadline() const {
    std::uint64_t ns;
    detail::check(tickless_fired_info(raw_, &ns, nullptr, nullptr, nullptr));
    return time_point(nanoseconds(static_cast<nanoseconds::rep>(ns)));
  }
  /* How long after its deadline the timer was found to be due; never negative. */
  nanoseconds late_by() const {
    std::uint64_t deadline, at;
    detail::check(tickless_fired_info(raw_, &deadline, &at, nullptr, nullptr));
    return nanoseconds(static_cast<nanoseconds::rep>(at - deadline));
  }
  /* How many expiries of a periodic timer were missed. */
  std::uint64_t overruns() const {
    std::uint64_t missed;
    detail::check(tickless_fired_info(raw_, nullptr, nullptr, nullptr, &missed));
    return missed;
  }
  std::uint32_t base() const {
    std::uint32_t base;
    detail::check(tickless_fired_info(raw_, nullptr, nullptr, &base, nullptr));
    return base;
  }
  void restart(nanoseconds after) { detail::check(tickless_fired_restart(raw_, after.count())); }
  /* Restarts the timer a whole number of periods after its deadline; returns how many expiries were
   * missed. */
  std::uint64_t forward(nanoseconds period) {
    std::uint64_t missed;
    detail::check(tickless_fired_forward(raw_, period.count(), &missed));
    return missed;
  }
  void stop() { detail::check(tickless_fired_stop(raw_)); }
  tickless_fired_t *get() const noexcept { return raw_; }

 private:
  tickless_fired_t *raw_;
};

/* A set of timers; its destructor stops them. */
class timers {
 public:
  timers() { start(nullptr); }
  /* Sets the options' size by itself. */
  explicit timers(tickless_options_t options) {
    options.size = sizeof options;
    start(&options);
  }
  timers(timers &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  timers &operator=(timers &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  timers(const timers &) = delete;
  timers &operator=(const timers &) = delete;
  ~timers() { detail::must(tickless_timers_stop(raw_), "timers are destroyed"); }

  time_point now() const {
    std::uint64_t ns;
    detail::check(tickless_timers_now(raw_, &ns));
    return time_point(nanoseconds(static_cast<nanoseconds::rep>(ns)));
  }
  /* The current time of a clock, one of TICKLESS_CLOCK_...; wall-clock time counts from 1970. */
  nanoseconds now_on(std::uint32_t which) const {
    std::uint64_t ns;
    detail::check(tickless_timers_now_on(raw_, which, &ns));
    return nanoseconds(static_cast<nanoseconds::rep>(ns));
  }
  /* A human-readable list of the pending timers. */
  std::string list() const {
    std::size_t needed = 0;
    detail::check(tickless_timers_list(raw_, nullptr, 0, &needed));
    std::string text(needed, '\0');
    /* The list may have changed since; a longer one is cut off. */
    detail::check(tickless_timers_list(raw_, text.data(), text.size(), &needed));
    text.resize(std::min(needed, text.size()) - 1);
    return text;
  }
  tickless_stats_t stats(std::uint32_t base = TICKLESS_ALL_BASES) const {
    tickless_stats_t stats{};
    stats.size = sizeof stats;
    detail::check(tickless_timers_stats(raw_, base, &stats));
    return stats;
  }
  tickless_timers_t *get() const noexcept { return raw_; }

 protected:
  /* Takes ownership of timers that were started in another way. */
  explicit timers(tickless_timers_t *raw) noexcept : raw_(raw) {}

 private:
  void start(const tickless_options_t *options) {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_timers_start(options, &raw_));
  }

  tickless_timers_t *raw_ = nullptr;
};

/* Timers on a clock that the program advances, for tests of code that waits. */
class virtual_timers : public timers {
 public:
  explicit virtual_timers(nanoseconds now = std::chrono::seconds(1)) : timers(started(now)) {}

  /* Advances the clock, and fires the timers that come due. */
  void advance(nanoseconds by) { detail::check(tickless_virtual_advance(get(), by.count())); }
  void advance_to(time_point to) {
    detail::check(tickless_virtual_advance_to(get(), detail::since_start(to)));
  }
  /* Advances to the next expiry; false if no timer is pending that would cause one. */
  bool advance_to_next() {
    bool has_fired;
    detail::check(tickless_virtual_advance_to_next(get(), &has_fired));
    return has_fired;
  }
  std::optional<time_point> next_event() const {
    std::uint64_t ns;
    detail::check(tickless_virtual_next_event(get(), &ns));
    auto next = detail::unless_never(ns);
    return next ? std::optional<time_point>(time_point(*next)) : std::nullopt;
  }
  void set_realtime(nanoseconds since_1970) {
    detail::check(tickless_virtual_set_realtime(
        get(), detail::since_start(time_point(since_1970))));
  }
  void suspend(nanoseconds duration) {
    detail::check(tickless_virtual_suspend(get(), duration.count()));
  }

 private:
  static tickless_timers_t *started(nanoseconds now) {
    tickless_timers_t *raw;
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(
        tickless_timers_start_virtual(nullptr, detail::since_start(time_point(now)), &raw));
    return raw;
  }
};

/* Timers that the program's own loop drives: poll `fd` for reading, and call `run`. */
class loop_timers {
 public:
  loop_timers() {
    tickless_timers_t *raw;
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_timers_start_in_loops(nullptr, 1, &raw, &loop_));
    set_.emplace(raw);
  }
  loop_timers(const loop_timers &) = delete;
  loop_timers &operator=(const loop_timers &) = delete;
  ~loop_timers() {
    set_.reset();
    detail::must(tickless_loop_destroy(loop_), "a loop is destroyed");
  }

  const timers &set() const noexcept { return *set_; }
  int fd() const {
    int descriptor;
    detail::check(tickless_loop_fd(loop_, &descriptor));
    return descriptor;
  }
  /* Fires the timers that are due; returns how many. */
  std::uint64_t run() {
    std::uint64_t fired;
    detail::check(tickless_loop_run(loop_, &fired));
    return fired;
  }
  /* How long the loop may wait; none means until the descriptor is readable. */
  std::optional<nanoseconds> timeout() {
    std::uint64_t ns;
    detail::check(tickless_loop_timeout(loop_, &ns));
    return detail::unless_never(ns);
  }
  void adopt() { detail::check(tickless_loop_adopt(loop_)); }

 private:
  struct owner : timers {
    explicit owner(tickless_timers_t *raw) noexcept : timers(raw) {}
  };

  tickless_loop_t *loop_ = nullptr;
  std::optional<owner> set_;
};

/* A timer with its callable, `void(tickless::fired)`. */
template <class F>
class timer {
 public:
  timer(const timers &set, std::uint32_t kind, F callback) : callback_(std::move(callback)) {
    detail::check(tickless_timer_init(&raw_, set.get(), kind, call, this));
  }
  timer(const timer &) = delete;
  timer &operator=(const timer &) = delete;
  ~timer() { detail::must(tickless_timer_destroy(&raw_), "a timer is destroyed"); }

  /* Arms the timer; a pending one is rearmed, earlier or later. */
  void start(nanoseconds after) { detail::check(tickless_timer_start(&raw_, after.count())); }
  /* Allows the timer to be late by up to `slack` so that it can share a wakeup. Precise timers
   * only. */
  void start(nanoseconds after, nanoseconds slack) {
    detail::check(tickless_timer_start_slack(&raw_, after.count(), slack.count()));
  }
  void start_at(time_point deadline) {
    detail::check(tickless_timer_start_at(&raw_, detail::since_start(deadline)));
  }
  void start_range(time_point soft, time_point hard) {
    detail::check(tickless_timer_start_range(&raw_, detail::since_start(soft),
                                             detail::since_start(hard)));
  }
  /* Arms an idle timer; a pending one only becomes earlier. Coarse timers only. */
  void reduce(nanoseconds after) { detail::check(tickless_timer_reduce(&raw_, after.count())); }

  found try_cancel() { return cancelled(tickless_timer_try_cancel); }
  found cancel() { return cancelled(tickless_timer_cancel); }
  /* Waits for the callback. Throws error, TICKLESS_WOULD_DEADLOCK, if that would never end: the
   * timer has then been cancelled, but its callback may be running. */
  found cancel_sync() { return cancelled(tickless_timer_cancel_sync); }
  found cancel_single_shot() { return cancelled(tickless_timer_cancel_single_shot); }
  found shutdown_sync() { return cancelled(tickless_timer_shutdown_sync); }

  bool is_pending() const { return asked(tickless_timer_is_pending); }
  bool is_active() const { return asked(tickless_timer_is_active); }
  /* Labels the timer in timers::list. */
  void label(const char *text) { detail::check(tickless_timer_label(&raw_, text)); }
  tickless_timer_t *get() noexcept { return &raw_; }

 private:
  static void call(tickless_fired_t *raw, void *self) {
    try {
      static_cast<timer *>(self)->callback_(fired(raw));
    } catch (...) {
      detail::uncaught();
    }
  }
  template <class Cancel>
  found cancelled(Cancel way) {
    tickless_cancel_t what;
    detail::check(way(&raw_, &what));
    return detail::of(what);
  }
  template <class Ask>
  bool asked(Ask ask) const {
    bool is;
    detail::check(ask(&raw_, &is));
    return is;
  }

  tickless_timer_t raw_{};
  F callback_;
};

/* A periodic timer with its callable, `void(tickless::fired)`. */
template <class F>
class periodic {
 public:
  periodic(const timers &set, F callback) : callback_(std::move(callback)) {
    detail::check(tickless_periodic_init(&raw_, set.get(), nullptr, call, this));
  }
  /* Sets the options' size by itself. */
  periodic(const timers &set, tickless_periodic_options_t options, F callback)
      : callback_(std::move(callback)) {
    options.size = sizeof options;
    detail::check(tickless_periodic_init(&raw_, set.get(), &options, call, this));
  }
  periodic(const periodic &) = delete;
  periodic &operator=(const periodic &) = delete;
  ~periodic() { detail::must(tickless_periodic_destroy(&raw_), "a timer is destroyed"); }

  void start(nanoseconds period) {
    detail::check(tickless_periodic_start(&raw_, period.count()));
  }
  void start_at(time_point first, nanoseconds period) {
    detail::check(tickless_periodic_start_at(&raw_, detail::since_start(first), period.count()));
  }
  found cancel() {
    tickless_cancel_t what;
    detail::check(tickless_periodic_cancel(&raw_, &what));
    return detail::of(what);
  }
  found cancel_sync() {
    tickless_cancel_t what;
    detail::check(tickless_periodic_cancel_sync(&raw_, &what));
    return detail::of(what);
  }
  bool is_active() const {
    bool is;
    detail::check(tickless_periodic_is_active(&raw_, &is));
    return is;
  }
  /* How long after the multiples of its period the timer expires; none without a phase. */
  std::optional<nanoseconds> phase_offset() const {
    std::uint64_t ns;
    detail::check(tickless_periodic_phase_offset(&raw_, &ns));
    return detail::unless_never(ns);
  }
  tickless_periodic_t *get() noexcept { return &raw_; }

 private:
  static void call(tickless_fired_t *raw, void *self) {
    try {
      static_cast<periodic *>(self)->callback_(fired(raw));
    } catch (...) {
      detail::uncaught();
    }
  }

  tickless_periodic_t raw_{};
  F callback_;
};

/* An expiry of a clock timer, as its callback sees it; valid until the callback returns. */
class clock_fired {
 public:
  explicit clock_fired(tickless_clock_fired_t *raw) noexcept : raw_(raw) {}

  nanoseconds deadline() const {
    std::uint64_t ns;
    detail::check(tickless_clock_fired_info(raw_, &ns, nullptr));
    return nanoseconds(static_cast<nanoseconds::rep>(ns));
  }
  void restart(nanoseconds after) {
    detail::check(tickless_clock_fired_restart(raw_, after.count()));
  }
  /* Restarts the timer a whole number of periods of its clock after its deadline; returns how many
   * expiries were missed. */
  std::uint64_t forward(nanoseconds period) {
    std::uint64_t missed;
    detail::check(tickless_clock_fired_forward(raw_, period.count(), &missed));
    return missed;
  }
  tickless_clock_fired_t *get() const noexcept { return raw_; }

 private:
  tickless_clock_fired_t *raw_;
};

/* A timer on wall-clock time or boottime, with its callable, `void(tickless::clock_fired)`. */
template <class F>
class clock_timer {
 public:
  /* `which` is one of TICKLESS_CLOCK_.... */
  clock_timer(const timers &set, std::uint32_t which, F callback)
      : callback_(std::move(callback)) {
    detail::check(tickless_clock_timer_create(set.get(), which, call, this, &raw_));
  }
  clock_timer(const clock_timer &) = delete;
  clock_timer &operator=(const clock_timer &) = delete;
  ~clock_timer() { detail::must(tickless_clock_timer_destroy(raw_), "a timer is destroyed"); }

  void start(nanoseconds after) { detail::check(tickless_clock_timer_start(raw_, after.count())); }
  /* Arms the timer for a time on its clock; see timers::now_on. */
  void start_at(nanoseconds at) {
    auto ns = detail::since_start(time_point(at));
    detail::check(tickless_clock_timer_start_range(raw_, ns, ns));
  }
  found cancel() {
    tickless_cancel_t what;
    detail::check(tickless_clock_timer_cancel(raw_, &what));
    return detail::of(what);
  }
  found cancel_sync() {
    tickless_cancel_t what;
    detail::check(tickless_clock_timer_cancel_sync(raw_, &what));
    return detail::of(what);
  }
  bool is_pending() const {
    bool is;
    detail::check(tickless_clock_timer_is_pending(raw_, &is));
    return is;
  }

 private:
  static void call(tickless_clock_fired_t *raw, void *self) {
    try {
      static_cast<clock_timer *>(self)->callback_(clock_fired(raw));
    } catch (...) {
      detail::uncaught();
    }
  }

  tickless_clock_timer_t *raw_ = nullptr;
  F callback_;
};

/* A limiter: a fixed number of permits in every period. */
class limiter {
 public:
  limiter(const timers &set, std::uint64_t permits, nanoseconds period, std::uint64_t extra = 0) {
    tickless_quota_t quota{};
    quota.size = sizeof quota;
    quota.quota = permits;
    quota.period_ns = detail::since_start(time_point(period));
    quota.extra = extra;
    detail::check(tickless_limiter_create(set.get(), &quota, &raw_));
  }
  limiter(const limiter &) = delete;
  limiter &operator=(const limiter &) = delete;
  ~limiter() { detail::must(tickless_limiter_destroy(raw_), "a limiter is destroyed"); }

  /* Returns whether the permits were available. Throws for more permits than there can ever be. */
  bool try_acquire(std::uint64_t permits = 1) {
    return got(tickless_limiter_try_acquire(raw_, permits));
  }
  /* Blocks until the permits are available. */
  void acquire(std::uint64_t permits = 1) {
    detail::check(tickless_limiter_acquire(raw_, permits, INT64_MAX));
  }
  /* Blocks for at most `timeout`; returns whether the permits were acquired. */
  bool acquire_for(nanoseconds timeout, std::uint64_t permits = 1) {
    return got(tickless_limiter_acquire(raw_, permits, timeout.count()));
  }
  /* Closes the limiter, for a shutdown: waiting calls and every later call throw TICKLESS_SHUT. */
  void close() noexcept { (void)tickless_limiter_close(raw_); }

 private:
  static bool got(tickless_status_t status) {
    if (status == TICKLESS_EMPTY || status == TICKLESS_TIMED_OUT) return false;
    detail::check(status);
    return true;
  }

  tickless_limiter_t *raw_ = nullptr;
};

/* Timers for the program's own loop, on any clock. One thread uses them. */
class local {
 public:
  explicit local(nanoseconds now, nanoseconds tick = nanoseconds::zero()) {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_local_create(point(now), point(tick), TICKLESS_PUSH_OUT_LAZY, &raw_));
  }
  local(local &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  local &operator=(local &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  local(const local &) = delete;
  local &operator=(const local &) = delete;
  ~local() { detail::must(tickless_local_destroy(raw_), "local timers are destroyed"); }

  tickless_key_t insert(std::uint32_t kind, void *data) {
    tickless_key_t key;
    detail::check(tickless_local_insert(raw_, kind, data, &key));
    return key;
  }
  void *remove(tickless_key_t key) {
    void *data;
    detail::check(tickless_local_remove(raw_, key, &data));
    return data;
  }
  void start(tickless_key_t key, nanoseconds after) {
    detail::check(tickless_local_start(raw_, key, after.count()));
  }
  void start_range(tickless_key_t key, nanoseconds soft, nanoseconds hard) {
    detail::check(tickless_local_start_range(raw_, key, point(soft), point(hard)));
  }
  /* Returns whether the timer was pending. */
  bool cancel(tickless_key_t key) {
    bool was_pending;
    detail::check(tickless_local_cancel(raw_, key, &was_pending));
    return was_pending;
  }
  bool is_pending(tickless_key_t key) const {
    bool is;
    detail::check(tickless_local_is_pending(raw_, key, &is));
    return is;
  }
  /* When to advance next; none if no timer is pending. */
  std::optional<nanoseconds> next_event() const {
    std::uint64_t ns;
    detail::check(tickless_local_next_event(raw_, &ns));
    return detail::unless_never(ns);
  }
  /* Calls `fire(local &, tickless_key_t, void *data)` for each timer that is due, for at most
   * `budget` timers; 0 means no limit. Returns how many fired. */
  template <class Fire>
  std::size_t advance(nanoseconds now, Fire &&fire, std::size_t budget = 0) {
    struct both {
      local *self;
      std::remove_reference_t<Fire> *fire;
    };
    both context{this, &fire};
    auto call = [](tickless_local_t *, tickless_key_t key, void *data, void *raw) {
      auto *of = static_cast<both *>(raw);
      try {
        (*of->fire)(*of->self, key, data);
      } catch (...) {
        detail::uncaught();
      }
    };
    std::size_t fired;
    detail::check(tickless_local_advance(raw_, point(now), budget, call, &context, &fired));
    return fired;
  }
  void adopt() { detail::check(tickless_local_adopt(raw_)); }
  tickless_local_t *get() const noexcept { return raw_; }

 private:
  static std::uint64_t point(nanoseconds at) {
    return at.count() < 0 ? 0 : static_cast<std::uint64_t>(at.count());
  }

  tickless_local_t *raw_ = nullptr;
};

}  // namespace tickless

#endif
