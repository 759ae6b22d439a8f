/**
 * @file
 * Tickless in Asio, Boost's or the standalone one: a timer whose waits complete in an io_context.
 *
 *   tickless::timers timers;
 *   tickless::asio_timer idle(io, timers);
 *   idle.expires_after(30s);
 *   idle.async_wait([&](auto failed) { if (!failed) connection.close(); });
 *
 * It has the interface of Asio's steady_timer and its rules: every completion token, per-operation
 * cancellation (Asio 1.19, Boost 1.77), C++20 awaitables, executors that are bound to handlers. A
 * wait that is cancelled, or whose timer is destroyed or gets another expiry, completes with
 * operation_aborted. A wait that is pending when its execution context is destroyed is destroyed
 * with its handler, which is not called. All waits are work for their context.
 *
 * Clock. Points in time are those of `timers::now`, so timers of a virtual_timers follow its clock.
 *
 * Cost. Arming and cancelling make no system call unless the timer is due before all others. Each
 * wait allocates once, with the allocator of its handler. An expiry posts the handlers from a
 * thread of the library; with a loop_timers, from the thread that calls its `run`.
 *
 * Threads. As all of Asio's objects, one timer is used by one thread at a time or from one strand.
 * The timers of the library must live longer than those of Asio.
 *
 * Which Asio: the standalone one if ASIO_STANDALONE is defined, which including <asio.hpp> before
 * this header does, or if there is no other; otherwise Boost's.
 */
#ifndef TICKLESS_ASIO_HPP
#define TICKLESS_ASIO_HPP

#include "../tickless.hpp"

#include <memory>
#include <mutex>
#include <set>

#if defined(ASIO_STANDALONE) || !__has_include(<boost/asio.hpp>)
#include <asio.hpp>
#define TICKLESS_ASIO_VERSION ASIO_VERSION
namespace tickless::detail {
namespace net = ::asio;
using net_error = std::error_code;
}  // namespace tickless::detail
#else
#include <boost/asio.hpp>
#define TICKLESS_ASIO_VERSION BOOST_ASIO_VERSION
namespace tickless::detail {
namespace net = ::boost::asio;
using net_error = boost::system::error_code;
}  // namespace tickless::detail
#endif

namespace tickless {
namespace detail {

/** A pending wait. It is ended once: completed, or dropped without calling its handler. */
struct asio_wait {
  asio_wait *next = nullptr;
  std::uint64_t id = 0;
  virtual void complete(net_error failed) = 0;
  virtual void drop() noexcept = 0;

 protected:
  ~asio_wait() = default;
};

/** A wait with its handler. Its memory is freed before the handler is called. */
template <class Handler, class Executor>
class asio_wait_of final : public asio_wait {
  using own_executor = typename net::associated_executor<Handler, Executor>::type;
  using allocator = typename std::allocator_traits<typename net::associated_allocator<
      Handler>::type>::template rebind_alloc<asio_wait_of>;
  using traits = std::allocator_traits<allocator>;

 public:
  static asio_wait *make(Handler &&called, const Executor &executor) {
    allocator memory(net::get_associated_allocator(called));
    asio_wait_of *self = traits::allocate(memory, 1);
    return new (self) asio_wait_of(std::move(called), executor);
  }
  void complete(net_error failed) override {
    auto context = std::move(context_);
    auto own = std::move(own_);
    auto call = [called = release(), failed]() mutable { std::move(called)(failed); };
    net::post(own.get_executor(), std::move(call));
  }
  void drop() noexcept override { (void)release(); }

 private:
  asio_wait_of(Handler &&called, const Executor &executor)
      : context_(executor),
        own_(net::get_associated_executor(called, executor)),
        handler_(std::move(called)) {}
  Handler release() {
    allocator memory(net::get_associated_allocator(handler_));
    Handler called(std::move(handler_));
    this->~asio_wait_of();
    traits::deallocate(memory, this, 1);
    return called;
  }

  net::executor_work_guard<Executor> context_;
  net::executor_work_guard<own_executor> own_;
  Handler handler_;
};

/** A list of waits, first in, first out. */
class asio_waits {
 public:
  asio_waits() = default;
  asio_waits(asio_waits &&other) noexcept { append(other); }
  asio_waits &operator=(asio_waits &&) = delete;
  bool empty() const noexcept { return !first_; }
  void push(asio_wait *wait) noexcept {
    *end_ = wait;
    end_ = &wait->next;
  }
  asio_wait *pop() noexcept { return take(&first_); }
  asio_wait *remove(std::uint64_t id) noexcept {
    for (asio_wait **at = &first_; *at; at = &(*at)->next) {
      if ((*at)->id == id) return take(at);
    }
    return nullptr;
  }
  void append(asio_waits &other) noexcept {
    while (asio_wait *wait = other.pop()) push(wait);
  }
  std::size_t complete(net_error failed) {
    std::size_t waits = 0;
    for (; asio_wait *wait = pop(); waits++) wait->complete(failed);
    return waits;
  }

 private:
  asio_wait *take(asio_wait **at) noexcept {
    asio_wait *wait = *at;
    if (!wait) return nullptr;
    *at = std::exchange(wait->next, nullptr);
    if (!*at) end_ = at;
    return wait;
  }

  asio_wait *first_ = nullptr;
  asio_wait **end_ = &first_;
};

/** What stays in place while an asio_timer is moved: the timer and its waits. */
class asio_state {
 public:
  asio_state(const timers &set, std::uint32_t kind) : set_(set.get()), timer_(set, kind, {this}) {}

  [[nodiscard]] time_point now() const {
    return time_point(from_ns(result<std::uint64_t>(tickless_timers_now, set_)));
  }
  [[nodiscard]] time_point expiry() const {
    std::lock_guard<std::mutex> held(lock_);
    return expiry_;
  }
  /** Sets the expiry, and returns how many waits that cancels. */
  std::size_t expire_at(time_point expiry) {
    asio_waits all;
    {
      std::lock_guard<std::mutex> held(lock_);
      expiry_ = expiry;
      take(all);
    }
    return all.complete(net::error::operation_aborted);
  }
  std::size_t cancel(bool only_first) {
    asio_waits some;
    {
      std::lock_guard<std::mutex> held(lock_);
      if (!only_first) {
        take(some);
      } else if (asio_wait *wait = waits_.pop()) {
        some.push(wait);
      }
    }
    return some.complete(net::error::operation_aborted);
  }
  void cancel(std::uint64_t id) {
    asio_wait *wait;
    {
      std::lock_guard<std::mutex> held(lock_);
      wait = waits_.remove(id);
    }
    if (wait) wait->complete(net::error::operation_aborted);
  }
  /** The number of the next wait. */
  std::uint64_t next_id() noexcept { return ++last_id_; }
  void add(asio_wait *wait, std::uint64_t id) {
    std::error_code failed;
    {
      std::lock_guard<std::mutex> held(lock_);
      wait->id = id;
      if (!is_over_ && waits_.empty()) timer_.start_at(expiry_, failed);
      if (!is_over_ && !failed) return waits_.push(wait);
    }
    /* The timer is shut: its context ends, or this is a forked child. */
    if (failed) return wait->complete(net::error::operation_aborted);
    wait->drop();
  }
  /** The context ends: moves all waits to `to`, and waits until none is being completed. */
  void end(asio_waits &to) noexcept {
    {
      std::lock_guard<std::mutex> held(lock_);
      is_over_ = true;
      to.append(waits_);
    }
    std::error_code failed;
    timer_.cancel_sync(failed);
  }

 private:
  struct on_expiry {
    asio_state *self;
    void operator()(fired expiry) { self->fire(expiry); }
  };

  void fire(fired expiry) {
    asio_waits due;
    {
      std::lock_guard<std::mutex> held(lock_);
      /* The expiry may have been moved since the timer was found to be due. */
      if (waits_.empty() || expiry.now() < expiry_) return;
      due.append(waits_);
    }
    due.complete({});
  }
  void take(asio_waits &to) {
    if (waits_.empty()) return;
    to.append(waits_);
    timer_.cancel();
  }

  mutable std::mutex lock_;
  tickless_timers_t *set_;
  time_point expiry_{};
  asio_waits waits_;
  std::uint64_t last_id_ = 0;
  bool is_over_ = false;
  /** The last member: its destructor waits for `fire`, which uses the others. */
  timer<on_expiry> timer_;
};

/** Drops the waits that are pending when their context is destroyed. A handler may own its timer,
 * as a coroutine does. */
class asio_service : public net::execution_context::service {
 public:
  static inline net::execution_context::id id;
  using key_type = asio_service;

  explicit asio_service(net::execution_context &context)
      : net::execution_context::service(context) {}
  std::shared_ptr<asio_state> make(const timers &set, std::uint32_t kind) {
    auto state = std::make_unique<asio_state>(set, kind);
    std::lock_guard<std::mutex> held(lock_);
    states_.insert(state.get());
    return {state.release(), [this](asio_state *over) { forget(over); }};
  }

 private:
  void shutdown() noexcept override {
    asio_waits all;
    {
      std::lock_guard<std::mutex> held(lock_);
      for (asio_state *state : states_) state->end(all);
    }
    while (asio_wait *wait = all.pop()) wait->drop();
  }
  void forget(asio_state *state) noexcept {
    {
      std::lock_guard<std::mutex> held(lock_);
      states_.erase(state);
    }
    delete state;
  }

  std::mutex lock_;
  std::set<asio_state *> states_;
};

template <class Executor>
asio_service &asio_service_of(const Executor &executor) {
  net::execution_context &context = net::query(executor, net::execution::context);
  return net::use_service<asio_service>(context);
}

}  // namespace detail

/** A timer of `timers` whose waits complete with an executor. It can be moved. */
template <class Executor = detail::net::any_io_executor>
class basic_asio_timer {
 public:
  using executor_type = Executor;
  using clock_type = clock;
  using duration = clock::duration;
  using time_point = clock::time_point;
  template <class Other>
  struct rebind_executor {
    using other = basic_asio_timer<Other>;
  };

  basic_asio_timer(const Executor &executor, const timers &set, std::uint32_t kind = precise)
      : executor_(executor), state_(detail::asio_service_of(executor).make(set, kind)) {}
  template <class Context, class = std::enable_if_t<std::is_convertible_v<
                               Context &, detail::net::execution_context &>>>
  basic_asio_timer(Context &context, const timers &set, std::uint32_t kind = precise)
      : basic_asio_timer(Executor(context.get_executor()), set, kind) {}
  /** A moved-from timer may only be destroyed or assigned to. */
  basic_asio_timer(basic_asio_timer &&) noexcept = default;
  basic_asio_timer &operator=(basic_asio_timer &&other) {
    std::swap(executor_, other.executor_);
    std::swap(state_, other.state_);
    other.end();
    return *this;
  }
  ~basic_asio_timer() { end(); }

  executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] time_point expiry() const { return state_->expiry(); }
  /** Sets the expiry, and cancels the pending waits; returns how many. */
  std::size_t expires_at(time_point at) { return state_->expire_at(at); }
  std::size_t expires_after(tickless::duration after) {
    auto now = state_->now();
    auto left = (time_point::max() - now).count();
    return expires_at(after.count() > left ? time_point::max() : now + duration(after.count()));
  }
  /** Cancels the pending waits; returns how many. The expiry stays. */
  std::size_t cancel() { return state_->cancel(false); }
  std::size_t cancel_one() { return state_->cancel(true); }

  /** Completes with `void(error_code)` at the expiry, and at once if that has passed. */
  template <class Token = typename detail::net::default_completion_token<Executor>::type>
  auto async_wait(Token &&token = Token()) {
    auto initiate = [state = state_, executor = executor_](auto &&called) {
      using handler_t = std::decay_t<decltype(called)>;
      std::uint64_t id = state->next_id();
#if TICKLESS_ASIO_VERSION >= 101900
      auto slot = detail::net::get_associated_cancellation_slot(called);
      if (slot.is_connected()) {
        slot.assign([of = std::weak_ptr<detail::asio_state>(state),
                     id](detail::net::cancellation_type type) {
          if (type == detail::net::cancellation_type::none) return;
          if (auto alive = of.lock()) alive->cancel(id);
        });
      }
#endif
      using wait = detail::asio_wait_of<handler_t, Executor>;
      state->add(wait::make(handler_t(std::forward<decltype(called)>(called)), executor), id);
    };
    return detail::net::async_initiate<Token, void(detail::net_error)>(std::move(initiate), token);
  }

 private:
  void end() {
    if (!state_) return;
    state_->cancel(false);
    state_.reset();
  }

  Executor executor_;
  std::shared_ptr<detail::asio_state> state_;
};

using asio_timer = basic_asio_timer<>;

}  // namespace tickless

#endif
