#include "runtime/metrics.h"

#include <prometheus/text_serializer.h>

#include <map>

namespace runtime {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Registry;

const std::map<std::string, std::string> kController{{"controller", "pytorchjob-controller"}};
const std::map<std::string, std::string> kQueue{{"name", "pytorchjob-controller"}};

// Upper bounds in seconds, as controller-runtime has them.
const Histogram::BucketBoundaries kSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                           1,     2.5,  5,     10,   30,  60};
const Histogram::BucketBoundaries kQueueSeconds{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};

Family<Counter>& Jobs(Registry& registry, const char* what) {
  return BuildCounter()
      .Name(std::string("training_operator_jobs_") + what + "_total")
      .Help(std::string("Counts number of jobs ") + what)
      .Register(registry);
}

std::map<std::string, std::string> JobLabels(const std::string& ns) {
  return {{"job_namespace", ns}, {"framework", "pytorch"}};
}

double Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Metrics::Metrics(const std::string& version)
    : created_(Jobs(registry_, "created")),
      deleted_(Jobs(registry_, "deleted")),
      successful_(Jobs(registry_, "successful")),
      failed_(Jobs(registry_, "failed")),
      restarted_(Jobs(registry_, "restarted")),
      passes_(BuildCounter()
                  .Name("controller_runtime_reconcile_total")
                  .Help("Total number of reconciliations per controller")
                  .Register(registry_)),
      requests_(BuildCounter()
                    .Name("rest_client_requests_total")
                    .Help("Number of HTTP requests, partitioned by status code and method")
                    .Register(registry_)),
      request_seconds_(BuildHistogram()
                           .Name("rest_client_request_duration_seconds")
                           .Help("Request latency in seconds, partitioned by method")
                           .Register(registry_)),
      events_dropped_(BuildCounter()
                          .Name("training_operator_events_dropped_total")
                          .Help("Events that could not be delivered")
                          .Register(registry_)
                          .Add({})),
      crd_outdated_(BuildGauge()
                        .Name("training_operator_crd_outdated")
                        .Help("1 while the installed CRD lacks fields that this operator writes")
                        .Register(registry_)
                        .Add({})),
      leading_(BuildGauge()
                   .Name("leader_election_master_status")
                   .Help("1 while this process is the leader")
                   .Register(registry_)
                   .Add({{"name", "pytorch-operator"}})),
      pass_errors_(BuildCounter()
                       .Name("controller_runtime_reconcile_errors_total")
                       .Help("Total number of reconciliation errors per controller")
                       .Register(registry_)
                       .Add(kController)),
      pass_seconds_(BuildHistogram()
                        .Name("controller_runtime_reconcile_time_seconds")
                        .Help("Length of time per reconciliation per controller")
                        .Register(registry_)
                        .Add(kController, kSeconds)),
      depth_(BuildGauge()
                 .Name("workqueue_depth")
                 .Help("Current depth of workqueue")
                 .Register(registry_)
                 .Add(kQueue)),
      adds_(BuildCounter()
                .Name("workqueue_adds_total")
                .Help("Total number of adds handled by workqueue")
                .Register(registry_)
                .Add(kQueue)),
      retries_(BuildCounter()
                   .Name("workqueue_retries_total")
                   .Help("Total number of retries handled by workqueue")
                   .Register(registry_)
                   .Add(kQueue)),
      queued_seconds_(
          BuildHistogram()
              .Name("workqueue_queue_duration_seconds")
              .Help("How long in seconds an item stays in workqueue before being requested")
              .Register(registry_)
              .Add(kQueue, kQueueSeconds)),
      worked_seconds_(BuildHistogram()
                          .Name("workqueue_work_duration_seconds")
                          .Help("How long in seconds processing an item from workqueue takes")
                          .Register(registry_)
                          .Add(kQueue, kQueueSeconds)) {
  BuildGauge()
      .Name("training_operator_build_info")
      .Help("The version of this operator; always 1")
      .Register(registry_)
      .Add({{"version", version}})
      .Set(1);
}

void Metrics::JobTransition(const std::string& ns, core::Transition transition) {
  switch (transition) {
    case core::Transition::kCreated:
      created_.Add(JobLabels(ns)).Increment();
      break;
    case core::Transition::kSuccessful:
      successful_.Add(JobLabels(ns)).Increment();
      break;
    case core::Transition::kFailed:
      failed_.Add(JobLabels(ns)).Increment();
      break;
    case core::Transition::kRestarted:
      restarted_.Add(JobLabels(ns)).Increment();
      break;
  }
}

void Metrics::JobDeleted(const std::string& ns) { deleted_.Add(JobLabels(ns)).Increment(); }
void Metrics::EventDropped() { events_dropped_.Increment(); }
void Metrics::CrdOutdated(bool outdated) { crd_outdated_.Set(outdated ? 1 : 0); }
void Metrics::Leading(bool leading) { leading_.Set(leading ? 1 : 0); }

void Metrics::Pass(PassResult result, double seconds) {
  const char* name = "success";
  if (result == PassResult::kError) name = "error";
  if (result == PassResult::kRequeue) name = "requeue";
  if (result == PassResult::kRequeueAfter) name = "requeue_after";
  auto labels = kController;
  labels["result"] = name;
  passes_.Add(labels).Increment();
  if (result == PassResult::kError) pass_errors_.Increment();
  pass_seconds_.Observe(seconds);
}

void Metrics::Request(std::string_view method, int status, double seconds) {
  const std::string verb(method);
  requests_.Add({{"code", status == 0 ? "<error>" : std::to_string(status)}, {"method", verb}})
      .Increment();
  request_seconds_.Add({{"verb", verb}}, kSeconds).Observe(seconds);
}

void Metrics::Added(std::size_t depth) {
  adds_.Increment();
  depth_.Set(static_cast<double>(depth));
}

void Metrics::Took(std::size_t depth, std::chrono::milliseconds waited) {
  depth_.Set(static_cast<double>(depth));
  queued_seconds_.Observe(Seconds(waited));
}

void Metrics::Finished(std::chrono::milliseconds worked) {
  worked_seconds_.Observe(Seconds(worked));
}

void Metrics::Retried() { retries_.Increment(); }

std::string Metrics::Render() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace runtime
