#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <string>
#include <string_view>

#include "core/plan.h"
#include "runtime/work_queue.h"

namespace runtime {

// What the process counts, under the names that dashboards for training-operator and for
// controller-runtime know. Thread-safe.
class Metrics : public QueueObserver {
 public:
  explicit Metrics(const std::string& version);

  void JobTransition(const std::string& ns, core::Transition transition);
  void JobDeleted(const std::string& ns);
  void EventDropped();
  void CrdOutdated(bool outdated);
  void Leading(bool leading);

  enum class PassResult { kSuccess, kError, kRequeue, kRequeueAfter };
  void Pass(PassResult result, double seconds);
  // kube::OnRequest; status 0 is a transport error, "<error>" as client-go calls it.
  void Request(std::string_view method, int status, double seconds);

  void Added(std::size_t depth) override;
  void Took(std::size_t depth, std::chrono::milliseconds waited) override;
  void Finished(std::chrono::milliseconds worked) override;
  void Retried() override;

  // The Prometheus text format.
  std::string Render() const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& created_;
  prometheus::Family<prometheus::Counter>& deleted_;
  prometheus::Family<prometheus::Counter>& successful_;
  prometheus::Family<prometheus::Counter>& failed_;
  prometheus::Family<prometheus::Counter>& restarted_;
  prometheus::Family<prometheus::Counter>& passes_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Counter& events_dropped_;
  prometheus::Gauge& crd_outdated_;
  prometheus::Gauge& leading_;
  prometheus::Counter& pass_errors_;
  prometheus::Histogram& pass_seconds_;
  prometheus::Gauge& depth_;
  prometheus::Counter& adds_;
  prometheus::Counter& retries_;
  prometheus::Histogram& queued_seconds_;
  prometheus::Histogram& worked_seconds_;
};

}  // namespace runtime
