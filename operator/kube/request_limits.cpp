#include "kube/request_limits.h"

#include <algorithm>

namespace kube {

using std::chrono::steady_clock;

std::chrono::nanoseconds TokenBucket::Take(steady_clock::time_point now) {
  if (qps_ <= 0) return std::chrono::nanoseconds(0);
  if (now > filled_at_) {
    const double seconds = std::chrono::duration<double>(now - filled_at_).count();
    tokens_ = std::min(burst_, tokens_ + seconds * qps_);
    filled_at_ = now;
  }
  tokens_ -= 1;
  if (tokens_ >= 0) return std::chrono::nanoseconds(0);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(-tokens_ / qps_));
}

RequestLimits::RequestLimits(double qps, int max_in_flight)
    : bucket_(qps, std::max(1.0, 2 * qps)), free_(std::max(1, max_in_flight)) {}

RequestLimits::Outcome RequestLimits::Enter(steady_clock::time_point deadline,
                                            const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, stop, deadline, [this] { return free_ > 0; })) {
    return stop.stop_requested() ? Outcome::kStopped : Outcome::kLate;
  }
  const auto now = steady_clock::now();
  const auto turn = now + bucket_.Take(now);
  if (turn > now) {
    changed_.wait_until(lock, stop, std::min(turn, deadline), [] { return false; });
  }
  if (stop.stop_requested()) return Outcome::kStopped;
  if (turn > deadline) return Outcome::kLate;
  // Others may have gone in while this one waited for its token.
  if (!changed_.wait_until(lock, stop, deadline, [this] { return free_ > 0; })) {
    return stop.stop_requested() ? Outcome::kStopped : Outcome::kLate;
  }
  --free_;
  return Outcome::kEntered;
}

void RequestLimits::Leave() {
  {
    std::lock_guard lock(mutex_);
    ++free_;
  }
  changed_.notify_one();
}

}  // namespace kube
