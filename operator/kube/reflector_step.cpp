#include "kube/reflector_step.h"

#include <algorithm>
#include <utility>

namespace kube {
namespace {

using std::chrono::milliseconds;
using Phase = ReflectorState::Phase;

constexpr milliseconds kFirstWait{100};
constexpr milliseconds kLongestWait{30000};
// After this many lists in a row that are older than what was seen, the cluster has indeed been set
// back (etcd restored from a backup), and an old list is the truth.
constexpr int kOlderListsRefused = 5;

bool IsDecimal(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Resource versions are opaque, but those of all Kubernetes API servers are decimal numbers that
// grow; others are taken as they come.
bool IsOlder(const std::string& version, const std::string& than) {
  if (!IsDecimal(version) || !IsDecimal(than)) return false;
  if (version.size() != than.size()) return version.size() < than.size();
  return version < than;
}

class Stepper {
 public:
  Stepper(ReflectorState state, const Resource& resource, double jitter)
      : resource_(resource), jitter_(jitter) {
    step_.next = std::move(state);
  }
  ReflectorStep Take() { return std::move(step_); }

  void operator()(const input::Page& page) {
    if (!page.continue_token.empty()) {
      next().continue_token = page.continue_token;
      return;
    }
    next().continue_token.clear();
    if (IsOlder(page.resource_version, next().resource_version) &&
        next().older_lists < kOlderListsRefused) {
      ++next().older_lists;
      Emit(effect::DropPages{});
      Fail("the API server answered with an older list (resourceVersion " + page.resource_version +
           ", already seen: " + next().resource_version + ")");
      return;
    }
    next().phase = Phase::kWatching;
    next().resource_version = page.resource_version;
    next().older_lists = 0;
    next().expired_pages = 0;
    Emit(effect::Replace{page.resource_version});
    Recover();
  }

  void operator()(const input::ListFailed& failed) {
    const bool continued = !next().continue_token.empty();
    next().continue_token.clear();
    Emit(effect::DropPages{});
    if (failed.error.code == base::ErrorCode::kGone && continued) {
      // The list took longer than the server keeps its version. From the start, and from the second
      // time on in one piece (see WantsOnePage).
      ++next().expired_pages;
      ++next().failures;
      step_.wait = Backoff(next().failures, jitter_);
      return;
    }
    Fail(Explain(failed.error), failed.error.retry_after);
  }

  void operator()(const input::Opened&) { Recover(); }

  void operator()(const input::Event& event) {
    if (event.type == "ERROR") {
      // The stream can't be trusted from here on. 410: our version is gone, which is no trouble.
      Emit(effect::EndWatch{});
      if (event.code == 410) {
        Expired();
      } else {
        next().phase = Phase::kListing;
        Fail("the watch of " + resource_.plural + " ended with an error: " + event.message);
      }
      return;
    }
    const bool bookmark = event.type == "BOOKMARK";
    if (bookmark && event.resource_version.empty()) return;
    if (!bookmark) {
      EventType type;
      if (event.type == "ADDED") {
        type = EventType::kAdded;
      } else if (event.type == "MODIFIED") {
        type = EventType::kModified;
      } else if (event.type == "DELETED") {
        type = EventType::kDeleted;
      } else {
        return;  // a type of the future
      }
      Emit(effect::Apply{type, event.object});
    }
    next().failures = 0;
    if (event.resource_version.empty()) return;
    next().resource_version = event.resource_version;
    Emit(effect::Progress{event.resource_version});
  }

  void operator()(const input::Garbage& garbage) {
    Emit(effect::EndWatch{});
    next().phase = Phase::kListing;
    Fail("the watch of " + resource_.plural + " brought what is no event: " + garbage.why);
  }

  void operator()(const input::WatchEnded& ended) {
    if (!ended.early) {
      next().failures = 0;
      return;
    }
    // A server that ends every watch at once must not be asked in a tight loop.
    ++next().failures;
    step_.wait = Backoff(next().failures, jitter_);
  }

  void operator()(const input::WatchFailed& failed) {
    switch (failed.error.code) {
      case base::ErrorCode::kGone:
        Expired();
        return;
      case base::ErrorCode::kNotFound:         // the resource itself has been removed
      case base::ErrorCode::kInvalidArgument:  // the server does not like our version
      case base::ErrorCode::kInvalid:
        next().phase = Phase::kListing;
        break;
      default:
        break;  // resume from where it was
    }
    Fail(Explain(failed.error), failed.error.retry_after);
  }

 private:
  ReflectorState& next() { return step_.next; }
  void Emit(ReflectorEffect effect) { step_.effects.push_back(std::move(effect)); }

  void Fail(const std::string& why, milliseconds retry_after = milliseconds(0)) {
    ++next().failures;
    step_.wait = std::max(Backoff(next().failures, jitter_), retry_after);
    if (std::exchange(next().troubled, true)) return;
    Emit(effect::Trouble{why});
  }

  // List again: at once, but with a wait if that happens without any progress in between.
  void Expired() {
    next().phase = Phase::kListing;
    if (next().failures > 0) step_.wait = Backoff(next().failures, jitter_);
    ++next().failures;
  }

  void Recover() {
    if (std::exchange(next().troubled, false)) Emit(effect::Trouble{""});
  }

  std::string Explain(const base::Error& error) const {
    const std::string name =
        resource_.plural + (resource_.group.empty() ? "" : "." + resource_.group);
    if (error.code == base::ErrorCode::kNotFound) {
      return "the API server does not know " + name + " (" + resource_.version +
             "): is its CustomResourceDefinition installed? " + error.message;
    }
    return "can't follow " + name + ": " + error.message;
  }

  const Resource& resource_;
  const double jitter_;
  ReflectorStep step_;
};

}  // namespace

milliseconds Backoff(int failures, double jitter) {
  const int doublings = std::clamp(failures - 1, 0, 16);
  const auto wait = std::min(kFirstWait * (1 << doublings), kLongestWait);
  return milliseconds(static_cast<long>(static_cast<double>(wait.count()) * (1 - jitter / 2)));
}

ReflectorStep Step(ReflectorState state, const ReflectorInput& input, const Resource& resource,
                   double jitter) {
  Stepper stepper(std::move(state), resource, jitter);
  std::visit(stepper, input);
  return stepper.Take();
}

}  // namespace kube
