/**
 * @file
 * Tickless for C++17: tickless.h with owning classes, std::chrono and callables. Header only.
 *
 *   tickless::timers timers;
 *   tickless::timer idle(timers, tickless::coarse, [&](tickless::fired) { connection.close(); });
 *   idle.start(30s);   // arm, or push out
 *
 * Memory. A timer contains its C timer and its callable and allocates nothing. It can therefore
 * neither be moved nor copied; create it where it stays, or behind a unique_ptr. Timers whose
 * callables differ have one type as timer<callback<>>. `timers`, `local` and `fixed` can be moved;
 * a moved-from object may only be destroyed or assigned to.
 *
 * Destruction. The destructor of a timer waits until its callback has returned, as
 * tickless_timer_destroy does; afterwards the objects that the callback uses can be destroyed. A
 * callback may destroy its own timer as its last statement; this also destroys its captures.
 * A destructor that would never return, or that of a `timers` which still has timers, prints a line
 * to stderr and calls std::terminate.
 *
 * Errors. Where the C function returns an error, the method throws tickless::error, or sets the
 * std::error_code that it got as its last argument. In programs without exceptions
 * (-fno-exceptions), an error of a method without that argument ends the program. A cancel that
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

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <ratio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tickless {

using std::chrono::nanoseconds;

/** The clock of the timers. In virtual time and in callbacks, timers::now and fired::now read
 * it. */
struct clock {
  using duration = nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<clock>;
  static constexpr bool is_steady = true;
  /** Reads the system's monotonic clock, from which the timers' own differs by about 1 us. */
  static time_point now() noexcept {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return time_point(std::chrono::duration_cast<duration>(now));
  }
};
using time_point = clock::time_point;

/** A duration, converted from any of std::chrono. Parts of a nanosecond are rounded up. One beyond
 * the library's longest, 292 years, becomes that one. */
class duration {
 public:
  template <class Rep, class Period>
  constexpr duration(std::chrono::duration<Rep, Period> of) noexcept
      : ns_(in_ns<std::ratio_divide<Period, std::nano>>(of.count())) {}
  constexpr std::int64_t count() const noexcept { return ns_; }

 private:
  template <class Factor, class Rep>
  static constexpr std::int64_t in_ns(Rep count) noexcept {
    if constexpr (std::is_integral_v<Rep> && Factor::den == 1) {
      constexpr std::int64_t most = INT64_MAX / Factor::num;
      if (count > 0 && static_cast<std::uintmax_t>(count) > most) return INT64_MAX;
      if constexpr (std::is_signed_v<Rep>) {
        if (count < -most) return INT64_MIN;
      }
      return static_cast<std::int64_t>(count) * Factor::num;
    } else {
      auto ns = static_cast<long double>(count) * Factor::num / Factor::den;
      if (ns >= static_cast<long double>(INT64_MAX)) return INT64_MAX;
      /* Also what is not a number. */
      if (!(ns > static_cast<long double>(INT64_MIN))) return INT64_MIN;
      auto whole = static_cast<std::int64_t>(ns);
      return static_cast<long double>(whole) < ns ? whole + 1 : whole;
    }
  }

  std::int64_t ns_;
};

/** Kinds of timers. Combine them with further flags of tickless.h by `|`. */
inline constexpr std::uint32_t coarse = TICKLESS_COARSE;
inline constexpr std::uint32_t precise = TICKLESS_PRECISE;

/** The state in which a cancel found a timer. */
enum class found { idle, pending, running };

/** A failed call; what() describes the cause and the remedy. */
class error : public std::runtime_error {
 public:
  explicit error(tickless_status_t status)
      : std::runtime_error(tickless_error_text()), status_(status) {}
  tickless_status_t status() const noexcept { return status_; }
  /** The name of the status, such as "TICKLESS_BUSY". */
  const char *name() const noexcept {
    return tickless_status_name(static_cast<std::int32_t>(status_));
  }

 private:
  tickless_status_t status_;
};

/** The statuses as error codes: `code == tickless::code(TICKLESS_BUSY)`. message() is the status's
 * name; tickless_error_text describes the last error of the thread. */
inline const std::error_category &category() noexcept {
  struct statuses : std::error_category {
    const char *name() const noexcept override { return "tickless"; }
    std::string message(int status) const override { return tickless_status_name(status); }
  };
  static const statuses of_all;
  return of_all;
}

inline std::error_code code(tickless_status_t status) noexcept {
  return {static_cast<int>(status), category()};
}

/** The version of the library, such as "0.1.0". */
inline const char *version() noexcept { return tickless_version(); }

using exception_handler = void (*)(std::exception_ptr);

namespace detail {

inline std::atomic<exception_handler> handler{nullptr};

/** Ends the program after an error that cannot be reported: in a destructor, or where there are no
 * exceptions. */
inline void must(tickless_status_t status, const char *what) noexcept {
  if (status == TICKLESS_OK) return;
  std::fprintf(stderr, "tickless: %s: %s\n", what, tickless_error_text());
  std::terminate();
}

inline void check(tickless_status_t status) {
#if defined(__cpp_exceptions)
  if (status != TICKLESS_OK) throw error(status);
#else
  must(status, "a call failed");
#endif
}

inline void uncaught() noexcept {
  if (exception_handler handle = handler.load()) return handle(std::current_exception());
  std::terminate();
}

/** Runs the body of a callback, which no exception may leave. */
template <class Body>
void callback_body(Body body) noexcept {
#if defined(__cpp_exceptions)
  try {
    body();
  } catch (...) {
    uncaught();
  }
#else
  body();
#endif
}

inline std::uint64_t since_start(time_point at) {
  /** A time before the start of the clock has passed. */
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

inline nanoseconds from_ns(std::uint64_t ns) {
  return nanoseconds(static_cast<nanoseconds::rep>(ns));
}

/** Converts a point in time from the library; none for TICKLESS_NEVER. */
inline std::optional<nanoseconds> unless_never(std::uint64_t ns) {
  if (ns == TICKLESS_NEVER) return std::nullopt;
  return from_ns(ns);
}

/** A duration for a field that cannot be negative; a negative one counts as zero. */
inline std::uint64_t unsigned_ns(duration of) {
  return since_start(time_point(nanoseconds(of.count())));
}

/** Calls a C function that writes its result to its last argument, and returns that result. */
template <class Result, class Call, class... Arguments>
Result result(Call call, Arguments... arguments) {
  Result value{};
  check(call(arguments..., &value));
  return value;
}

/** Whether permits were acquired; throws for an error. */
inline bool acquired(tickless_status_t status) {
  if (status == TICKLESS_EMPTY || status == TICKLESS_TIMED_OUT) return false;
  check(status);
  return true;
}

inline tickless_quota_t quota_of(std::uint64_t amount, duration period, std::uint64_t extra) {
  tickless_quota_t quota{};
  quota.quota = amount;
  quota.period_ns = unsigned_ns(period);
  quota.extra = extra;
  return quota;
}

inline tickless_quota_counts_t sized_counts() {
  tickless_quota_counts_t counts{};
  counts.size = sizeof counts;
  return counts;
}

/** Creates an object from a quota, whose size it sets. */
template <class Raw, class Create>
Raw *of_quota(Create create, tickless_timers_t *set, tickless_quota_t quota) {
  quota.size = sizeof quota;
  return result<Raw *>(create, set, &quota);
}

/** Advances a `local` or `fixed`: calls `fire(self, key, data)` for each timer that is due. */
template <class Self, class Raw, class Advance, class Fire>
std::size_t advance(Advance with, Self *self, Raw *raw, std::uint64_t now, std::size_t budget,
                    Fire &fire) {
  struct both {
    Self *self;
    Fire *fire;
  };
  both context{self, &fire};
  auto call = [](Raw *, tickless_key_t key, void *data, void *raw_context) {
    auto *of = static_cast<both *>(raw_context);
    detail::callback_body([&] { (*of->fire)(*of->self, key, data); });
  };
  std::size_t fired;
  check(with(raw, now, budget, call, &context, &fired));
  return fired;
}

}  // namespace detail

/** Sets the handler for exceptions that leave a callback, and returns the previous one. Null
 * removes it. The handler runs on the callback's thread; an exception that leaves it ends the
 * program. */
inline exception_handler set_exception_handler(exception_handler handler) noexcept {
  return detail::handler.exchange(handler);
}

/** An expiry, as its callback sees it; valid until the callback returns. */
class fired {
 public:
  explicit fired(tickless_fired_t *raw) noexcept : raw_(raw) {}

  [[nodiscard]] time_point deadline() const {
    std::uint64_t ns;
    detail::check(tickless_fired_info(raw_, &ns, nullptr, nullptr, nullptr));
    return time_point(detail::from_ns(ns));
  }
  /** How long after its deadline the timer was found to be due; never negative. */
  [[nodiscard]] nanoseconds late_by() const {
    std::uint64_t deadline, at;
    detail::check(tickless_fired_info(raw_, &deadline, &at, nullptr, nullptr));
    return nanoseconds(static_cast<nanoseconds::rep>(at - deadline));
  }
  /** How many expiries of a periodic timer were missed. */
  std::uint64_t overruns() const {
    return detail::result<std::uint64_t>(tickless_fired_info, raw_, nullptr, nullptr, nullptr);
  }
  std::uint32_t base() const {
    std::uint32_t base;
    detail::check(tickless_fired_info(raw_, nullptr, nullptr, &base, nullptr));
    return base;
  }
  /** Reads the clock. */
  [[nodiscard]] time_point now() const {
    return time_point(detail::from_ns(detail::result<std::uint64_t>(tickless_fired_now, raw_)));
  }
  void restart(duration after) { detail::check(tickless_fired_restart(raw_, after.count())); }
  void restart_range(time_point soft, time_point hard) {
    detail::check(tickless_fired_restart_range(raw_, detail::since_start(soft),
                                               detail::since_start(hard)));
  }
  /** Restarts the timer a whole number of periods after its deadline; returns how many expiries
   * were missed. */
  std::uint64_t forward(duration period) {
    return detail::result<std::uint64_t>(tickless_fired_forward, raw_, period.count());
  }
  void stop() { detail::check(tickless_fired_stop(raw_)); }
  tickless_fired_t *get() const noexcept { return raw_; }

 private:
  tickless_fired_t *raw_;
};

/** A set of timers; its destructor stops them. */
class timers {
 public:
  timers() { start(nullptr); }
  /** Sets the options' size by itself. */
  explicit timers(tickless_options_t options) {
    options.size = sizeof options;
    start(&options);
  }
  /** After an error it may only be destroyed or assigned to. */
  timers(tickless_options_t options, std::error_code &failed) noexcept {
    options.size = sizeof options;
    tickless_status_t status = TICKLESS_ABI_CHECK();
    if (status == TICKLESS_OK) status = tickless_timers_start(&options, &raw_);
    failed = code(status);
  }
  timers(timers &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  timers &operator=(timers &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  timers(const timers &) = delete;
  timers &operator=(const timers &) = delete;
  ~timers() { detail::must(tickless_timers_stop(raw_), "timers are destroyed"); }

  [[nodiscard]] time_point now() const {
    std::uint64_t ns;
    detail::check(tickless_timers_now(raw_, &ns));
    return time_point(detail::from_ns(ns));
  }
  /** The current time of a clock, one of TICKLESS_CLOCK_...; wall-clock time counts from 1970. */
  [[nodiscard]] nanoseconds now_on(std::uint32_t which) const {
    std::uint64_t ns;
    detail::check(tickless_timers_now_on(raw_, which, &ns));
    return detail::from_ns(ns);
  }
  /** A human-readable list of the pending timers. */
  [[nodiscard]] std::string list() const {
    std::string text;
    std::size_t needed = 0;
    /* The list can grow between two calls: of timers, and of digits. */
    do {
      text.resize(needed + needed / 8);
      detail::check(tickless_timers_list(raw_, text.data(), text.size(), &needed));
    } while (needed > text.size());
    text.resize(needed - 1);
    return text;
  }
  [[nodiscard]] tickless_stats_t stats(std::uint32_t base = TICKLESS_ALL_BASES) const {
    tickless_stats_t stats{};
    stats.size = sizeof stats;
    detail::check(tickless_timers_stats(raw_, base, &stats));
    return stats;
  }
  tickless_timers_t *get() const noexcept { return raw_; }

 protected:
  /** Takes ownership of timers that were started in another way. */
  explicit timers(tickless_timers_t *raw) noexcept : raw_(raw) {}

 private:
  void start(const tickless_options_t *options) {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_timers_start(options, &raw_));
  }

  tickless_timers_t *raw_ = nullptr;
};

/** Timers on a clock that the program advances, for tests of code that waits. */
class virtual_timers : public timers {
 public:
  explicit virtual_timers(duration now = std::chrono::seconds(1)) : timers(started(now)) {}

  /** Advances the clock, and fires the timers that come due. */
  void advance(duration by) { detail::check(tickless_virtual_advance(get(), by.count())); }
  void advance_to(time_point to) {
    detail::check(tickless_virtual_advance_to(get(), detail::since_start(to)));
  }
  /** Advances to the next expiry; false if no timer is pending that would cause one. */
  bool advance_to_next() {
    return detail::result<bool>(tickless_virtual_advance_to_next, get());
  }
  [[nodiscard]] std::optional<time_point> next_event() const {
    std::uint64_t ns;
    detail::check(tickless_virtual_next_event(get(), &ns));
    auto next = detail::unless_never(ns);
    return next ? std::optional<time_point>(time_point(*next)) : std::nullopt;
  }
  void set_realtime(duration since_1970) {
    detail::check(tickless_virtual_set_realtime(
        get(), detail::unsigned_ns(since_1970)));
  }
  void suspend(duration length) {
    detail::check(tickless_virtual_suspend(get(), length.count()));
  }

 private:
  static tickless_timers_t *started(duration now) {
    tickless_timers_t *raw;
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(
        tickless_timers_start_virtual(nullptr, detail::unsigned_ns(now), &raw));
    return raw;
  }
};

/** Timers that the program's own loop drives: poll `fd` for reading, and call `run`. */
class loop_timers {
 public:
  loop_timers() : loop_timers(tickless_options_t{}) {}
  /** Sets the options' size by itself. */
  explicit loop_timers(tickless_options_t options) {
    tickless_timers_t *raw;
    options.size = sizeof options;
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_timers_start_in_loops(&options, 1, &raw, &loop_));
    set_.emplace(raw);
  }
  loop_timers(const loop_timers &) = delete;
  loop_timers &operator=(const loop_timers &) = delete;
  ~loop_timers() {
    set_.reset();
    detail::must(tickless_loop_destroy(loop_), "a loop is destroyed");
  }

  const timers &set() const noexcept { return *set_; }
  [[nodiscard]] int fd() const {
    return detail::result<int>(tickless_loop_fd, loop_);
  }
  /** Fires the timers that are due; returns how many. */
  std::uint64_t run() {
    return detail::result<std::uint64_t>(tickless_loop_run, loop_);
  }
  /** How long the loop may wait; none means until the descriptor is readable. */
  [[nodiscard]] std::optional<nanoseconds> timeout() {
    return detail::unless_never(detail::result<std::uint64_t>(tickless_loop_timeout, loop_));
  }
  void adopt() { detail::check(tickless_loop_adopt(loop_)); }

 private:
  struct owner : timers {
    explicit owner(tickless_timers_t *raw) noexcept : timers(raw) {}
  };

  tickless_loop_t *loop_ = nullptr;
  std::optional<owner> set_;
};

/** Any callable `void(tickless::fired)` of at most `Size` bytes, in place and without an
 * allocation. Timers with different callables have one type with it: `timer<callback<>>`. */
template <std::size_t Size = 32>
class callback {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, callback>>>
  callback(F &&function) {
    using function_t = std::decay_t<F>;
    static_assert(sizeof(function_t) <= Size, "the callable needs a larger callback<Size>");
    static_assert(alignof(function_t) <= alignof(std::max_align_t), "the callable is over-aligned");
    static_assert(std::is_nothrow_move_constructible_v<function_t>, "its move may throw");
    new (place_) function_t(std::forward<F>(function));
    call_ = [](void *at, fired expiry) { (*static_cast<function_t *>(at))(expiry); };
    move_ = [](void *from, void *to) noexcept {
      auto *own = static_cast<function_t *>(from);
      if (to) new (to) function_t(std::move(*own));
      own->~function_t();
    };
  }
  /** The other one may only be destroyed or assigned to afterwards. */
  callback(callback &&other) noexcept
      : call_(other.call_), move_(std::exchange(other.move_, nullptr)) {
    if (move_) move_(other.place_, place_);
  }
  callback(const callback &) = delete;
  callback &operator=(const callback &) = delete;
  ~callback() {
    if (move_) move_(place_, nullptr);
  }

  void operator()(fired expiry) { call_(place_, expiry); }

 private:
  alignas(std::max_align_t) unsigned char place_[Size];
  void (*call_)(void *, fired);
  /** Moves the callable to `to` unless that is null, and destroys it. */
  void (*move_)(void *from, void *to) noexcept;
};

/** A timer with its callable, `void(tickless::fired)`. */
template <class F>
class timer {
 public:
  timer(const timers &set, std::uint32_t kind, F callback) : callback_(std::move(callback)) {
    detail::check(tickless_timer_init(&raw_, set.get(), kind, call, this));
  }
  timer(const timer &) = delete;
  timer &operator=(const timer &) = delete;
  ~timer() { detail::must(tickless_timer_destroy(&raw_), "a timer is destroyed"); }

  /** Arms the timer; a pending one is rearmed, earlier or later. */
  void start(duration after) { detail::check(tickless_timer_start(&raw_, after.count())); }
  void start(duration after, std::error_code &failed) noexcept {
    failed = code(tickless_timer_start(&raw_, after.count()));
  }
  /** Counts from `now`, which the caller has just read with timers::now. */
  void start_from(time_point now, duration after) {
    detail::check(tickless_timer_start_from(&raw_, detail::since_start(now), after.count()));
  }
  /** Allows the timer to be late by up to `slack` so that it can share a wakeup. Precise timers
   * only. */
  void start(duration after, duration slack) {
    detail::check(tickless_timer_start_slack(&raw_, after.count(), slack.count()));
  }
  void start_at(time_point deadline) {
    detail::check(tickless_timer_start_at(&raw_, detail::since_start(deadline)));
  }
  void start_at(time_point deadline, std::error_code &failed) noexcept {
    failed = code(tickless_timer_start_at(&raw_, detail::since_start(deadline)));
  }
  /** Arms the timer for a time of another steady clock, by the time that is left until then. */
  template <class Clock, class Unit>
  void start_at(std::chrono::time_point<Clock, Unit> deadline) {
    static_assert(Clock::is_steady, "for wall-clock time there is clock_timer");
    auto now = Clock::now();
    if (deadline <= now) return start(nanoseconds::zero());
    start(deadline - now);
  }
  void start_range(time_point soft, time_point hard) {
    detail::check(tickless_timer_start_range(&raw_, detail::since_start(soft),
                                             detail::since_start(hard)));
  }
  /** Arms an idle timer; a pending one only becomes earlier. Coarse timers only. */
  void reduce(duration after) { detail::check(tickless_timer_reduce(&raw_, after.count())); }

  found try_cancel() { return cancelled(tickless_timer_try_cancel); }
  found cancel() { return cancelled(tickless_timer_cancel); }
  /** Waits for the callback. Throws error, TICKLESS_WOULD_DEADLOCK, if that would never end: the
   * timer has then been cancelled, but its callback may be running. */
  found cancel_sync() { return cancelled(tickless_timer_cancel_sync); }
  found cancel_single_shot() { return cancelled(tickless_timer_cancel_single_shot); }
  found cancel_sync(std::error_code &failed) noexcept {
    tickless_cancel_t state{};
    failed = code(tickless_timer_cancel_sync(&raw_, &state));
    return detail::of(state);
  }
  found shutdown_sync() { return cancelled(tickless_timer_shutdown_sync); }

  [[nodiscard]] bool is_pending() const { return asked(tickless_timer_is_pending); }
  [[nodiscard]] bool is_active() const { return asked(tickless_timer_is_active); }
  /** Labels the timer in timers::list. */
  void label(const char *text) { detail::check(tickless_timer_label(&raw_, text)); }
  tickless_timer_t *get() noexcept { return &raw_; }

 private:
  static void call(tickless_fired_t *raw, void *self) {
    detail::callback_body([&] { static_cast<timer *>(self)->callback_(fired(raw)); });
  }
  template <class Cancel>
  found cancelled(Cancel way) {
    return detail::of(detail::result<tickless_cancel_t>(way, &raw_));
  }
  template <class Ask>
  bool asked(Ask ask) const {
    return detail::result<bool>(ask, &raw_);
  }

  tickless_timer_t raw_{};
  F callback_;
};

/** A periodic timer with its callable, `void(tickless::fired)`. */
template <class F>
class periodic {
 public:
  periodic(const timers &set, F callback) : callback_(std::move(callback)) {
    detail::check(tickless_periodic_init(&raw_, set.get(), nullptr, call, this));
  }
  /** Sets the options' size by itself. */
  periodic(const timers &set, tickless_periodic_options_t options, F callback)
      : callback_(std::move(callback)) {
    options.size = sizeof options;
    detail::check(tickless_periodic_init(&raw_, set.get(), &options, call, this));
  }
  periodic(const periodic &) = delete;
  periodic &operator=(const periodic &) = delete;
  ~periodic() { detail::must(tickless_periodic_destroy(&raw_), "a timer is destroyed"); }

  void start(duration period) {
    detail::check(tickless_periodic_start(&raw_, period.count()));
  }
  void start(duration period, std::error_code &failed) noexcept {
    failed = code(tickless_periodic_start(&raw_, period.count()));
  }
  void start_at(time_point first, duration period) {
    detail::check(tickless_periodic_start_at(&raw_, detail::since_start(first), period.count()));
  }
  found cancel() {
    return detail::of(detail::result<tickless_cancel_t>(tickless_periodic_cancel, &raw_));
  }
  found cancel_sync() {
    return detail::of(detail::result<tickless_cancel_t>(tickless_periodic_cancel_sync, &raw_));
  }
  [[nodiscard]] bool is_active() const {
    return detail::result<bool>(tickless_periodic_is_active, &raw_);
  }
  /** How long after the multiples of its period the timer expires; none without a phase. */
  [[nodiscard]] std::optional<nanoseconds> phase_offset() const {
    return detail::unless_never(
        detail::result<std::uint64_t>(tickless_periodic_phase_offset, &raw_));
  }
  /** Labels the timer in timers::list. */
  void label(const char *text) { detail::check(tickless_periodic_label(&raw_, text)); }
  tickless_periodic_t *get() noexcept { return &raw_; }

 private:
  static void call(tickless_fired_t *raw, void *self) {
    detail::callback_body([&] { static_cast<periodic *>(self)->callback_(fired(raw)); });
  }

  tickless_periodic_t raw_{};
  F callback_;
};

/** An expiry of a clock timer, as its callback sees it; valid until the callback returns. */
class clock_fired {
 public:
  explicit clock_fired(tickless_clock_fired_t *raw) noexcept : raw_(raw) {}

  [[nodiscard]] nanoseconds deadline() const {
    std::uint64_t ns;
    detail::check(tickless_clock_fired_info(raw_, &ns, nullptr));
    return detail::from_ns(ns);
  }
  void restart(duration after) {
    detail::check(tickless_clock_fired_restart(raw_, after.count()));
  }
  /** Restarts the timer for a time on its clock. */
  void restart_at(duration at) {
    detail::check(tickless_clock_fired_restart_at(raw_, detail::unsigned_ns(at)));
  }
  /** Restarts the timer a whole number of periods of its clock after its deadline; returns how many
   * expiries were missed. */
  std::uint64_t forward(duration period) {
    return detail::result<std::uint64_t>(tickless_clock_fired_forward, raw_, period.count());
  }
  tickless_clock_fired_t *get() const noexcept { return raw_; }

 private:
  tickless_clock_fired_t *raw_;
};

/** A timer on wall-clock time or boottime, with its callable, `void(tickless::clock_fired)`. */
template <class F>
class clock_timer {
 public:
  /** `which` is one of TICKLESS_CLOCK_.... */
  clock_timer(const timers &set, std::uint32_t which, F callback)
      : callback_(std::move(callback)) {
    detail::check(tickless_clock_timer_create(set.get(), which, call, this, &raw_));
  }
  clock_timer(const clock_timer &) = delete;
  clock_timer &operator=(const clock_timer &) = delete;
  ~clock_timer() { detail::must(tickless_clock_timer_destroy(raw_), "a timer is destroyed"); }

  void start(duration after) { detail::check(tickless_clock_timer_start(raw_, after.count())); }
  void start(duration after, std::error_code &failed) noexcept {
    failed = code(tickless_clock_timer_start(raw_, after.count()));
  }
  /** Arms the timer for a time on its clock; see timers::now_on. */
  void start_at(duration at) {
    auto ns = detail::unsigned_ns(at);
    detail::check(tickless_clock_timer_start_range(raw_, ns, ns));
  }
  found cancel() {
    return detail::of(detail::result<tickless_cancel_t>(tickless_clock_timer_cancel, raw_));
  }
  found cancel_sync() {
    return detail::of(detail::result<tickless_cancel_t>(tickless_clock_timer_cancel_sync, raw_));
  }
  [[nodiscard]] bool is_pending() const {
    return detail::result<bool>(tickless_clock_timer_is_pending, raw_);
  }

 private:
  static void call(tickless_clock_fired_t *raw, void *self) {
    detail::callback_body([&] { static_cast<clock_timer *>(self)->callback_(clock_fired(raw)); });
  }

  tickless_clock_timer_t *raw_ = nullptr;
  F callback_;
};

/** A limiter: a fixed number of permits in every period. */
class limiter {
 public:
  limiter(const timers &set, std::uint64_t permits, duration period, std::uint64_t extra = 0)
      : limiter(set, detail::quota_of(permits, period, extra)) {}
  /** Sets the quota's size by itself. */
  limiter(const timers &set, tickless_quota_t quota)
      : raw_(detail::of_quota<tickless_limiter_t>(tickless_limiter_create, set.get(), quota)) {}
  limiter(const limiter &) = delete;
  limiter &operator=(const limiter &) = delete;
  ~limiter() { detail::must(tickless_limiter_destroy(raw_), "a limiter is destroyed"); }

  /** Returns whether the permits were available. Throws for more permits than there can ever be. */
  [[nodiscard]] bool try_acquire(std::uint64_t permits = 1) {
    return detail::acquired(tickless_limiter_try_acquire(raw_, permits));
  }
  /** TICKLESS_EMPTY is an error here. */
  void try_acquire(std::uint64_t permits, std::error_code &failed) noexcept {
    failed = code(tickless_limiter_try_acquire(raw_, permits));
  }
  /** How long it will take until so many permits are available; zero if they are now. */
  [[nodiscard]] nanoseconds retry_after(std::uint64_t permits = 1) const {
    return detail::from_ns(
        detail::result<std::uint64_t>(tickless_limiter_retry_after, raw_, permits));
  }
  /** Blocks until the permits are available. Throws TICKLESS_EMPTY if as many threads wait as the
   * quota's `waiting_max` allows. */
  void acquire(std::uint64_t permits = 1) {
    detail::check(tickless_limiter_acquire(raw_, permits, INT64_MAX));
  }
  /** Blocks for at most `timeout`; returns whether the permits were acquired. */
  [[nodiscard]] bool acquire_for(duration timeout, std::uint64_t permits = 1) {
    return detail::acquired(tickless_limiter_acquire(raw_, permits, timeout.count()));
  }
  /** TICKLESS_TIMED_OUT and TICKLESS_EMPTY are errors here. */
  void acquire_for(duration timeout, std::uint64_t permits, std::error_code &failed) noexcept {
    failed = code(tickless_limiter_acquire(raw_, permits, timeout.count()));
  }
  /** Closes the limiter, for a shutdown: waiting calls and every later call throw TICKLESS_SHUT. */
  void close() noexcept { (void)tickless_limiter_close(raw_); }
  [[nodiscard]] std::uint64_t available() const {
    std::uint64_t available;
    detail::check(tickless_limiter_stats(raw_, &available, nullptr));
    return available;
  }
  [[nodiscard]] tickless_quota_counts_t stats() const {
    auto counts = detail::sized_counts();
    detail::check(tickless_limiter_stats(raw_, nullptr, &counts));
    return counts;
  }

 private:
  tickless_limiter_t *raw_;
};

/** A limiter for each key, such as an address or a user. */
class keyed {
 public:
  keyed(const timers &set, std::uint64_t permits, duration period, std::uint64_t extra = 0)
      : keyed(set, detail::quota_of(permits, period, extra)) {}
  /** Sets the quota's size by itself. */
  keyed(const timers &set, tickless_quota_t quota)
      : raw_(detail::of_quota<tickless_keyed_t>(tickless_keyed_create, set.get(), quota)) {}
  keyed(const keyed &) = delete;
  keyed &operator=(const keyed &) = delete;
  ~keyed() { detail::must(tickless_keyed_destroy(raw_), "a keyed limiter is destroyed"); }

  /** Returns whether the permits of this key were available. */
  [[nodiscard]] bool try_acquire(std::string_view key, std::uint64_t permits = 1) {
    return detail::acquired(tickless_keyed_try_acquire(raw_, bytes(key), key.size(), permits));
  }
  /** TICKLESS_EMPTY is an error here. */
  void try_acquire(std::string_view key, std::uint64_t permits, std::error_code &failed) noexcept {
    failed = code(tickless_keyed_try_acquire(raw_, bytes(key), key.size(), permits));
  }
  /** How long it will take until so many permits of this key are available; zero if they are
   * now. */
  [[nodiscard]] nanoseconds retry_after(std::string_view key, std::uint64_t permits = 1) const {
    return detail::from_ns(detail::result<std::uint64_t>(tickless_keyed_retry_after, raw_,
                                                         bytes(key), key.size(), permits));
  }
  /** How many keys there are. */
  [[nodiscard]] std::size_t count() const {
    return detail::result<std::size_t>(tickless_keyed_count, raw_, false);
  }
  /** Removes the keys that have all their permits; returns how many keys are left. */
  std::size_t forget_idle() {
    return detail::result<std::size_t>(tickless_keyed_count, raw_, true);
  }

 private:
  static const std::uint8_t *bytes(std::string_view key) {
    return reinterpret_cast<const std::uint8_t *>(key.data());
  }

  tickless_keyed_t *raw_;
};

/** A group of threads that share a fixed amount of CPU time in every period. */
class throttle {
 public:
  throttle(const timers &set, duration cpu, duration period,
           nanoseconds extra = nanoseconds::zero())
      : throttle(set, detail::quota_of(detail::unsigned_ns(cpu), period,
                                       detail::unsigned_ns(extra))) {}
  /** Sets the quota's size by itself. */
  throttle(const timers &set, tickless_quota_t quota)
      : raw_(detail::of_quota<tickless_throttle_t>(tickless_throttle_create, set.get(), quota)) {}
  throttle(const throttle &) = delete;
  throttle &operator=(const throttle &) = delete;
  ~throttle() { detail::must(tickless_throttle_destroy(raw_), "a throttle is destroyed"); }

  [[nodiscard]] tickless_quota_counts_t stats() const {
    auto counts = detail::sized_counts();
    detail::check(tickless_throttle_stats(raw_, &counts));
    return counts;
  }
  tickless_throttle_t *get() const noexcept { return raw_; }

 private:
  tickless_throttle_t *raw_;
};

/** The calling thread's membership in a throttle. Only that thread may use and destroy it. */
class worker {
 public:
  explicit worker(const throttle &group)
      : raw_(detail::result<tickless_worker_t *>(tickless_throttle_join, group.get())) {}
  worker(const worker &) = delete;
  worker &operator=(const worker &) = delete;
  ~worker() { detail::must(tickless_worker_leave(raw_), "a worker is destroyed"); }

  /** Parks the thread while the quota is used up; returns whether it parked. */
  bool check() { return detail::result<bool>(tickless_worker_check, raw_); }
  /** Gives back the unused rest of the thread's slice, before the thread idles for long. */
  void rest() { detail::check(tickless_worker_rest(raw_)); }

 private:
  tickless_worker_t *raw_;
};

/** Timers for the program's own loop. One thread uses them. */
class local {
 public:
  /** On the system's monotonic clock, with a tick of 1 ms: a duration counts from the call. */
  local() {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_local_create(0, TICKLESS_PUSH_OUT_LAZY, &raw_));
  }
  /** On a clock that only `advance` moves: a duration counts from the last advance. */
  explicit local(duration now, duration tick = nanoseconds::zero()) {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_local_create_manual(detail::unsigned_ns(now), detail::unsigned_ns(tick),
                                               TICKLESS_PUSH_OUT_LAZY, &raw_));
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
    return detail::result<tickless_key_t>(tickless_local_insert, raw_, kind, data);
  }
  void *remove(tickless_key_t key) {
    return detail::result<void *>(tickless_local_remove, raw_, key);
  }
  /** The time for the next advance. */
  [[nodiscard]] nanoseconds now() {
    return detail::from_ns(detail::result<std::uint64_t>(tickless_local_now, raw_));
  }
  /** The data that a timer was inserted with. */
  [[nodiscard]] void *data(tickless_key_t key) const {
    return detail::result<void *>(tickless_local_data, raw_, key);
  }
  void start(tickless_key_t key, duration after) {
    detail::check(tickless_local_start(raw_, key, after.count()));
  }
  void start_range(tickless_key_t key, duration soft, duration hard) {
    detail::check(tickless_local_start_range(raw_, key, detail::unsigned_ns(soft),
                                             detail::unsigned_ns(hard)));
  }
  /** Returns whether the timer was pending. */
  bool cancel(tickless_key_t key) {
    return detail::result<bool>(tickless_local_cancel, raw_, key);
  }
  [[nodiscard]] bool is_pending(tickless_key_t key) const {
    return detail::result<bool>(tickless_local_is_pending, raw_, key);
  }
  /** Reserves memory for so many timers of each kind. */
  void reserve(std::size_t timers) { detail::check(tickless_local_reserve(raw_, timers)); }
  /** How many timers there are, and how many of them are pending. */
  [[nodiscard]] std::size_t size() const {
    std::size_t timers;
    detail::check(tickless_local_count(raw_, &timers, nullptr));
    return timers;
  }
  [[nodiscard]] std::size_t pending() const {
    return detail::result<std::size_t>(tickless_local_count, raw_, nullptr);
  }
  /** When to advance next; none if no timer is pending. */
  [[nodiscard]] std::optional<nanoseconds> next_event() const {
    return detail::unless_never(detail::result<std::uint64_t>(tickless_local_next_event, raw_));
  }
  /** Calls `fire(local &, tickless_key_t, void *data)` for each timer that is due, for at most
   * `budget` timers; 0 means no limit. Returns how many fired. */
  template <class Fire>
  std::size_t advance(duration now, Fire &&fire, std::size_t budget = 0) {
    return detail::advance(tickless_local_advance, this, raw_, detail::unsigned_ns(now), budget,
                           fire);
  }
  /** Writes the keys of the due timers to the container `keys`, which says by its size how many it
   * takes; returns how many fired. More may be due if next_event has passed. */
  template <class Keys>
  std::size_t advance_into(duration now, Keys &keys) {
    return detail::result<std::size_t>(tickless_local_advance_into, raw_,
                                       detail::unsigned_ns(now), std::data(keys),
                                       std::size(keys));
  }
  void adopt() { detail::check(tickless_local_adopt(raw_)); }
  tickless_local_t *get() const noexcept { return raw_; }

 private:
  tickless_local_t *raw_ = nullptr;
};

namespace detail {

/** What `local_timers` keeps for each timer: how to fire it. */
struct local_entry {
  void (*fire)(local_entry *, nanoseconds now);
};

}  // namespace detail

/** Timers with callables for the program's own loop: local_timer and local_periodic. One thread
 * uses them. They must live longer than their timers. */
class local_timers {
 public:
  /** The clocks are those of `local`. */
  local_timers() = default;
  explicit local_timers(duration now, duration tick = nanoseconds::zero()) : local_(now, tick) {}
  local_timers(const local_timers &) = delete;
  local_timers &operator=(const local_timers &) = delete;

  /** The time for the next advance. */
  [[nodiscard]] nanoseconds now() { return local_.now(); }
  /** When to advance next; none if no timer is pending. */
  [[nodiscard]] std::optional<nanoseconds> next_event() const { return local_.next_event(); }
  /** Calls the timers that are due, at most `budget` of them; 0 means no limit. Returns how
   * many. */
  std::size_t advance(duration now, std::size_t budget = 0) {
    /* A time before that of the last advance counts as that time. */
    if (now.count() > last_.count()) last_ = nanoseconds(now.count());
    auto fire = [now = last_](local &, tickless_key_t, void *data) {
      auto *entry = static_cast<detail::local_entry *>(data);
      entry->fire(entry, now);
    };
    return local_.advance(now, fire, budget);
  }
  std::size_t advance() { return advance(now()); }
  void adopt() { local_.adopt(); }
  /** The timers without callables. */
  local &raw() noexcept { return local_; }

 private:
  local local_;
  nanoseconds last_{0};
};

namespace detail {

/** The key of a timer in `local_timers`, which its destructor removes. */
class local_owner : protected local_entry {
 public:
  local_owner(const local_owner &) = delete;
  local_owner &operator=(const local_owner &) = delete;
  /** Returns whether the timer was pending. */
  bool cancel() { return set_.raw().cancel(key_); }
  [[nodiscard]] bool is_pending() const { return set_.raw().is_pending(key_); }

 protected:
  local_owner(local_timers &set, std::uint32_t kind, void (*call)(local_entry *, nanoseconds))
      : local_entry{call}, set_(set), key_(set.raw().insert(kind, entry())) {}
  ~local_owner() {
    void *data;
    must(tickless_local_remove(set_.raw().get(), key_, &data), "a local timer is destroyed");
  }
  local_entry *entry() noexcept { return this; }

  local_timers &set_;
  tickless_key_t key_;
};

}  // namespace detail

/** A timer of `local_timers` with its callable, `void()`. The callable may start, cancel and, as
 * its last statement, destroy its timer. */
template <class F>
class local_timer : public detail::local_owner {
 public:
  local_timer(local_timers &set, std::uint32_t kind, F callback)
      : local_owner(set, kind, call), callback_(std::move(callback)) {}
  /** Arms the timer; a pending one is rearmed, earlier or later. */
  void start(duration after) { set_.raw().start(key_, after); }
  void start_range(duration soft, duration hard) { set_.raw().start_range(key_, soft, hard); }

 private:
  static void call(detail::local_entry *entry, nanoseconds) {
    static_cast<local_timer *>(entry)->callback_();
  }

  F callback_;
};

/** A periodic timer of `local_timers` with its callable, `void(std::uint64_t missed)`: how many
 * expiries were missed before this one. It does not drift, and missed expiries are skipped. */
template <class F>
class local_periodic : public detail::local_owner {
 public:
  local_periodic(local_timers &set, F callback)
      : local_owner(set, precise, call), callback_(std::move(callback)) {}
  /** The first expiry is a period from now. A period that is not positive is an error. */
  void start(duration period) {
    if (period.count() <= 0) detail::check(tickless_local_start(set_.raw().get(), key_, -1));
    period_ = period.count();
    next_ = set_.now().count();
    arm(0);
  }

 private:
  static void call(detail::local_entry *entry, nanoseconds now) {
    auto *self = static_cast<local_periodic *>(entry);
    auto missed = (now.count() - self->next_) / self->period_;
    /* First, because the callable may cancel or destroy the timer. */
    self->arm(missed);
    self->callback_(static_cast<std::uint64_t>(missed));
  }
  /** Arms the timer for the expiry after `missed` further ones. One beyond all time never comes. */
  void arm(std::int64_t missed) {
    bool is_beyond = missed >= (INT64_MAX - next_) / period_;
    next_ = is_beyond ? INT64_MAX : next_ + (missed + 1) * period_;
    set_.raw().start_range(key_, nanoseconds(next_), nanoseconds(next_));
  }

  std::int64_t period_ = 0;
  std::int64_t next_ = 0;
  F callback_;
};

/** Timeouts of one thread that share one duration for each class; see tickless_fixed_t. */
class fixed {
 public:
  /** On the system's monotonic clock, as local timers. */
  fixed() {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_fixed_create(&raw_));
  }
  /** On a clock that only `advance` moves. */
  explicit fixed(duration now) {
    detail::check(TICKLESS_ABI_CHECK());
    detail::check(tickless_fixed_create_manual(detail::unsigned_ns(now), &raw_));
  }
  fixed(fixed &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  fixed &operator=(fixed &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  fixed(const fixed &) = delete;
  fixed &operator=(const fixed &) = delete;
  ~fixed() { detail::must(tickless_fixed_destroy(raw_), "fixed timeouts are destroyed"); }

  /** The time for the next advance. */
  [[nodiscard]] nanoseconds now() {
    return detail::from_ns(detail::result<std::uint64_t>(tickless_fixed_now, raw_));
  }
  /** Adds a class of timers with this duration; returns its number. */
  std::uint32_t add_class(duration after) {
    return detail::result<std::uint32_t>(tickless_fixed_add_class, raw_, after.count());
  }
  /** Changes the duration of a class, also for its pending timers. */
  void set_after(std::uint32_t number, duration after) {
    detail::check(tickless_fixed_set_after(raw_, number, after.count()));
  }
  /** Scales the duration of a class: 0.5 halves it, 1 restores it. */
  void scale(std::uint32_t number, double factor) {
    detail::check(tickless_fixed_scale(raw_, number, factor));
  }
  tickless_key_t insert(std::uint32_t number, void *data) {
    return detail::result<tickless_key_t>(tickless_fixed_insert, raw_, number, data);
  }
  void *remove(tickless_key_t key) {
    return detail::result<void *>(tickless_fixed_remove, raw_, key);
  }
  /** Starts or restarts a timer. */
  void start(tickless_key_t key) { detail::check(tickless_fixed_start(raw_, key)); }
  /** Returns whether the timer was pending. */
  bool cancel(tickless_key_t key) {
    return detail::result<bool>(tickless_fixed_cancel, raw_, key);
  }
  /** How many timers there are, and how many of them are pending. */
  [[nodiscard]] std::size_t size() const {
    std::size_t timers;
    detail::check(tickless_fixed_count(raw_, &timers, nullptr));
    return timers;
  }
  [[nodiscard]] std::size_t pending() const {
    return detail::result<std::size_t>(tickless_fixed_count, raw_, nullptr);
  }
  /** When to advance next; none if no timer is pending. */
  [[nodiscard]] std::optional<nanoseconds> next_event() const {
    return detail::unless_never(detail::result<std::uint64_t>(tickless_fixed_next_event, raw_));
  }
  /** Calls `fire(fixed &, tickless_key_t, void *data)` for each timer that is due, as
   * local::advance does. */
  template <class Fire>
  std::size_t advance(duration now, Fire &&fire, std::size_t budget = 0) {
    return detail::advance(tickless_fixed_advance, this, raw_, detail::unsigned_ns(now), budget,
                           fire);
  }
  void adopt() { detail::check(tickless_fixed_adopt(raw_)); }
  tickless_fixed_t *get() const noexcept { return raw_; }

 private:
  tickless_fixed_t *raw_ = nullptr;
};

}  // namespace tickless

#endif
