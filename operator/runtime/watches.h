#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kube/client.h"
#include "kube/reflector.h"
#include "runtime/cache.h"
#include "runtime/work_queue.h"

namespace runtime {

// Pods and Services of all jobs have this label, so that the others of the cluster cost nothing.
inline constexpr char kChildSelector[] =
    "training.kubeflow.org/operator-name=pytorchjob-controller";

// Brings what one reflector delivers into the cache, and the jobs concerned into the queue.
// Replace and Apply run on the reflector's thread; Synced and Trouble may be asked from any.
class Feed : public kube::Sink {
 public:
  // True once a complete list has been taken in.
  virtual bool Synced() const = 0;
  // Why the connection is lost, "" while it is not.
  virtual std::string Why() const = 0;
};

// `scope` is the namespace that the reflector covers, "" for all. All arguments outlive the feed.
std::unique_ptr<Feed> MakeFeed(core::Kind kind, const std::string& scope, Cache& cache,
                               WorkQueue& queue, std::shared_ptr<spdlog::logger> log);

// The reflectors of jobs, pods, Services and autoscalers, with a gang scheduler also of PodGroups:
// a set for each namespace (none given: one set for all namespaces), and the threads they run on.
class Watches {
 public:
  // All outlive this object.
  Watches(kube::Client& client, const std::vector<std::string>& namespaces,
          const std::string& gang_scheduler, Cache& cache, WorkQueue& queue,
          std::shared_ptr<spdlog::logger> log);

  // Every list has been taken in: decisions may begin.
  bool Synced() const;
  // What is not as it should be, for /readyz; "" when all is well.
  std::string Why() const;
  void Stop();

 private:
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<std::jthread> threads_;  // last: they use the feeds
};

}  // namespace runtime
