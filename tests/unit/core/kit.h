#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"

namespace core::test {

using Json = nlohmann::json;

// 2026-03-01T12:00:00Z, when every scene begins.
extern const TimePoint kStart;

// YAML -> JSON with the types that kubectl would give to plain scalars.
Json FromYaml(const std::string& text);

// "[Created=T, Running=F, Suspended=T]", in the order of the array.
std::string Conditions(const Json& status);
// One line an action: "status", "create Pod mnist-master-0", "delete Service mnist-master-0",
// "force Pod x" (a delete with grace 0), "patch Pod x".
std::vector<std::string> Lines(const Plan& plan);
// "Warning PyTorchJobFailed: the message" or "Normal …".
std::vector<std::string> Lines(const std::vector<Event>& events);
// The labels and the owner reference that a child of the job has, for objects that a test makes.
Json OwnedMetadata(const Json& job, const std::string& name);

// The job demo/mnist: `master` and `workers` pods of one container `pytorch` each, all of the same
// restartPolicy ("" = not set).
Json MakeJob(bool master, int workers, const std::string& restart_policy = "");

// One job and its children as JSON, kept the way an API server keeps them, and the seconds that
// pass. All that Decide gets goes through the decoders; all that it wants is carried out here.
class Scene {
 public:
  explicit Scene(Json job);

  Json job;
  std::map<std::string, Json> pods;
  std::map<std::string, Json> services;
  std::optional<Json> pod_group;
  std::optional<Json> autoscaler;
  std::vector<Holder> holders;
  std::vector<CreateError> create_errors;
  std::map<std::string, NodeState> nodes;
  // Set to make the operator remember its last write, which holds writes of counts back.
  bool remembers_writes = false;
  std::optional<TimePoint> status_written;
  TimePoint now = kStart;
  Options options;
  std::vector<Event> events;  // of all writes so far
  std::vector<Transition> transitions;

  // Decides and changes nothing.
  Plan Look() const;
  // Decides and carries it out. Expects what must hold after every pass: the same answer when asked
  // twice, an empty plan when asked again (but that ReplicaFailure ends after creates that worked),
  // legal conditions in every status, and the same outcome when the operator dies after any prefix
  // of the actions.
  Plan Step();
  // Steps, with terminating pods and Services going away in between, until nothing is left to do.
  void Settle();
  void Advance(seconds duration) { now += duration; }
  // A new process: nothing is known but what the API server holds.
  void RestartOperator();

  // What kubelets, schedulers and people do. Times are `now`.
  void Start(const std::string& pod);  // phase Running, Ready
  void StartAll();                     // every pod that is pending
  // All containers end with `code`; phase Succeeded for 0, else Failed.
  void Exit(const std::string& pod, int code, const std::string& reason = "");
  // Phase Failed with a status.reason and no container status, as the kubelet refuses and evicts.
  void Refuse(const std::string& pod, const std::string& reason);
  // The container restarts in place after `code` and runs again.
  void RestartInPlace(const std::string& pod, int code);
  // The container waits in CrashLoopBackOff; `restarts` restarts so far.
  void CrashLoop(const std::string& pod, int restarts, int code);
  void Wait(const std::string& pod, const std::string& reason, const std::string& message);
  void DeleteByHand(const std::string& pod);  // deletionTimestamp, 30 s of grace
  void Remove(const std::string& pod);        // gone, and seen to go
  void RemoveTerminating();
  void Set(const std::string& pointer, Json value);  // "/spec/runPolicy/suspend"

  const Json& status() const { return job.at("status"); }
  std::string conditions() const { return Conditions(status()); }
  const Json* Condition(const std::string& type) const;
  // The lines of events since the last call.
  std::vector<std::string> NewEvents();
  std::vector<std::string> Children() const;  // "Pod x", "Pod y (terminating)", "Service z"

  Snapshot Observe() const;
  void Apply(const Action& action);

 private:
  Json& Status(const std::string& pod);
  bool Wanted(const std::string& pod) const;
  void ExpectLegalStatus() const;
  void ExpectPrefixesConverge(const Plan& plan) const;

  std::map<std::string, std::pair<Json, TimePoint>> departed_;
  int revision_ = 1;
  size_t events_read_ = 0;
};

}  // namespace core::test
