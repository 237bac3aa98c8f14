#include "runtime/watches.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/kube_api.h"

namespace runtime {
namespace {

template <class T>
class TypedFeed : public Feed {
 public:
  using Decode = base::Result<T> (*)(std::string_view);

  TypedFeed(core::Kind kind, Decode decode, std::string scope, Cache& cache, WorkQueue& queue,
            std::shared_ptr<spdlog::logger> log)
      : kind_(kind),
        decode_(decode),
        scope_(std::move(scope)),
        cache_(cache),
        queue_(queue),
        log_(std::move(log)) {}

  void Replace(const std::vector<std::string_view>& objects,
               const std::string& resource_version) override {
    std::vector<T> decoded;
    decoded.reserve(objects.size());
    for (std::string_view object : objects) {
      auto view = decode_(object);
      if (view) {
        decoded.push_back(std::move(*view));
      } else {
        Skip(view.error());
      }
    }
    Enqueue(cache_.Replace(scope_, std::move(decoded), resource_version));
    synced_ = true;
  }

  void Apply(kube::EventType type, std::string_view object) override {
    auto view = decode_(object);
    if (!view) {
      Skip(view.error());
      return;
    }
    Enqueue(cache_.Apply(scope_, std::move(*view), type == kube::EventType::kDeleted));
  }

  void Progress(const std::string& resource_version) override {
    cache_.Advance(kind_, scope_, resource_version);
  }

  void Trouble(const std::string& why) override {
    const std::string what =
        "watch of " + ResourceOf(kind_, "").plural + (scope_.empty() ? "" : " in " + scope_);
    if (why.empty()) {
      log_->info("{} is back", what);
    } else {
      log_->warn("{}: {}; trying again until it works", what, why);
    }
    std::lock_guard lock(mutex_);
    why_ = why.empty() ? "" : what + ": " + why;
  }

  bool Synced() const override { return synced_; }

  std::string Why() const override {
    std::lock_guard lock(mutex_);
    if (!why_.empty() || synced_) return why_;
    return "the list of " + ResourceOf(kind_, "").plural + " has not come yet";
  }

 private:
  void Enqueue(const std::vector<Touched>& touched) {
    for (const Touched& t : touched) queue_.Add(t.key, t.priority);
  }
  void Skip(const base::Error& error) {
    log_->warn("watch of {}: an object was left out: {}", ResourceOf(kind_, "").plural,
               error.message);
  }

  const core::Kind kind_;
  const Decode decode_;
  const std::string scope_;
  Cache& cache_;
  WorkQueue& queue_;
  const std::shared_ptr<spdlog::logger> log_;
  std::atomic<bool> synced_{false};
  mutable std::mutex mutex_;
  std::string why_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Feed> MakeFeed(core::Kind kind, const std::string& scope, Cache& cache,
                               WorkQueue& queue, std::shared_ptr<spdlog::logger> log) {
  auto make = [&](auto decode) -> std::unique_ptr<Feed> {
    using View = std::decay_t<decltype(*decode(std::string_view()))>;
    return std::make_unique<TypedFeed<View>>(kind, decode, scope, cache, queue, std::move(log));
  };
  switch (kind) {
    case core::Kind::kJob:
      return make(core::DecodeJob);
    case core::Kind::kPod:
      return make(core::DecodePod);
    case core::Kind::kService:
      return make(core::DecodeService);
    case core::Kind::kPodGroup:
      return make(core::DecodePodGroup);
    case core::Kind::kAutoscaler:
      return make(core::DecodeAutoscaler);
  }
  return nullptr;
}

Watches::Watches(kube::Client& client, const std::vector<std::string>& namespaces,
                 const std::string& gang_scheduler, Cache& cache, WorkQueue& queue,
                 std::shared_ptr<spdlog::logger> log) {
  std::vector<core::Kind> kinds{core::Kind::kJob, core::Kind::kPod, core::Kind::kService,
                                core::Kind::kAutoscaler};
  if (!gang_scheduler.empty()) kinds.push_back(core::Kind::kPodGroup);
  const std::vector<std::string> all{""};
  for (const std::string& ns : namespaces.empty() ? all : namespaces) {
    for (core::Kind kind : kinds) {
      kube::ReflectorOptions options;
      options.resource = ResourceOf(kind, gang_scheduler);
      options.ns = ns;
      if (kind != core::Kind::kJob) options.label_selector = kChildSelector;
      feeds_.push_back(MakeFeed(kind, ns, cache, queue, log));
      threads_.emplace_back([&client, options, sink = feeds_.back().get()](std::stop_token stop) {
        kube::RunReflector(client, options, *sink, std::move(stop));
      });
    }
  }
}

bool Watches::Synced() const {
  for (const auto& feed : feeds_) {
    if (!feed->Synced()) return false;
  }
  return true;
}

std::string Watches::Why() const {
  std::string why;
  for (const auto& feed : feeds_) {
    const std::string one = feed->Why();
    if (!one.empty()) why += (why.empty() ? "" : "\n") + one;
  }
  return why;
}

void Watches::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

}  // namespace runtime
