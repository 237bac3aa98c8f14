#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace kube {

// When a request may go at a rate of `qps` with bursts of up to `burst`. Not thread-safe; no clock.
class TokenBucket {
 public:
  // qps 0: no limit.
  TokenBucket(double qps, double burst) : qps_(qps), burst_(burst), tokens_(burst) {}

  // Takes a token, if need be one that does not exist yet: the caller goes after the returned time.
  std::chrono::nanoseconds Take(std::chrono::steady_clock::time_point now);

 private:
  const double qps_;
  const double burst_;
  double tokens_;  // negative: promised already
  std::chrono::steady_clock::time_point filled_at_{};
};

// Holds requests back: at most `max_in_flight` at once, and at most `qps` a second. Thread-safe.
class RequestLimits {
 public:
  RequestLimits(double qps, int max_in_flight);

  enum class Outcome { kEntered, kLate, kStopped };
  // Waits for this request's turn, until `deadline` or `stop`. kEntered must be followed by
  // Leave().
  Outcome Enter(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);
  void Leave();

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  TokenBucket bucket_;  // these: guarded by mutex_
  int free_;
};

}  // namespace kube
