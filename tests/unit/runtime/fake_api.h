#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/json.h"
#include "runtime/api.h"
#include "runtime/cache.h"

namespace runtime {

// An API server in memory that records what it is asked. Objects get uid, resourceVersion and
// creationTimestamp; merge patches check metadata.resourceVersion; deletes check the uid and are
// immediate. What happened since the last Sync is told to a cache as a watch would.
class FakeApi : public Api {
 public:
  using Json = core::Json;
  // Asked before each request with "create Pod x", "patch-status x", …: an error to answer with.
  // With `applied` set by it the request takes effect all the same (a lost reply).
  using Fault = std::function<std::optional<base::Error>(const std::string& call, bool& applied)>;

  base::Result<std::string> Get(core::Kind kind, const std::string& ns,
                                const std::string& name) override {
    std::lock_guard lock(mutex_);
    bool applied = false;
    if (auto error = Ask("get " + std::string(core::Name(kind)) + " " + name, applied)) {
      return *error;
    }
    auto it = objects_.find({kind, ns, name});
    if (it == objects_.end()) return NotFound(name);
    return core::Dump(it->second);
  }

  base::Result<std::string> GetNode(const std::string& name) override {
    std::lock_guard lock(mutex_);
    calls.push_back("get Node " + name);
    auto it = nodes.find(name);
    if (it == nodes.end()) return NotFound(name);
    return it->second;
  }

  base::Result<std::string> Create(core::Kind kind, const std::string& ns,
                                   const std::string& body) override {
    std::lock_guard lock(mutex_);
    Json object = Json::parse(body);
    const std::string name = object["metadata"]["name"];
    return Write("create " + std::string(core::Name(kind)) + " " + name,
                 [&]() -> base::Result<std::string> {
                   if (objects_.contains({kind, ns, name})) {
                     return base::Error{
                         base::ErrorCode::kAlreadyExists, "\"" + name + "\" already exists", {}};
                   }
                   return core::Dump(Put(kind, ns, std::move(object)));
                 });
  }

  base::Result<std::string> PatchStatus(const core::JobKey& job, const std::string& body) override {
    std::lock_guard lock(mutex_);
    return Write("patch-status " + job.name,
                 [&] { return Merge(core::Kind::kJob, job.ns, job.name, Json::parse(body)); });
  }

  base::Result<std::string> Patch(core::Kind kind, const std::string& ns, const std::string& name,
                                  const std::string& body) override {
    std::lock_guard lock(mutex_);
    return Write("patch " + std::string(core::Name(kind)) + " " + name,
                 [&] { return Merge(kind, ns, name, Json::parse(body)); });
  }

  base::Result<std::string> Delete(const std::string& ns, const core::Delete& what) override {
    std::lock_guard lock(mutex_);
    return Write("delete " + std::string(core::Name(what.kind)) + " " + what.name,
                 [&]() -> base::Result<std::string> {
                   auto it = objects_.find({what.kind, ns, what.name});
                   if (it == objects_.end()) return NotFound(what.name);
                   if (!what.uid.empty() && it->second["metadata"]["uid"] != what.uid) {
                     return base::Error{base::ErrorCode::kConflict, "the uid differs", {}};
                   }
                   return core::Dump(Remove(it));
                 });
  }

  base::Result<std::string> CreateEvent(const std::string&, const std::string& body) override {
    std::lock_guard lock(mutex_);
    return Write("create-event", [&]() -> base::Result<std::string> {
      events.push_back(Json::parse(body));
      return body;
    });
  }

  base::Result<std::string> PatchEvent(const std::string&, const std::string& name,
                                       const std::string& body) override {
    std::lock_guard lock(mutex_);
    return Write("patch-event", [&]() -> base::Result<std::string> {
      for (Json& event : events) {
        if (event["metadata"]["name"] != name) continue;
        event.merge_patch(Json::parse(body));
        return core::Dump(event);
      }
      return NotFound(name);
    });
  }

  // A user's or kubelet's write.
  Json& Put(core::Kind kind, const std::string& ns, Json object) {
    Json& metadata = object["metadata"];
    const std::string name = metadata["name"];
    metadata["namespace"] = ns;
    if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++uids_);
    if (!metadata.contains("creationTimestamp")) {
      metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
    }
    metadata["resourceVersion"] = std::to_string(++version_);
    Json& stored = objects_[{kind, ns, name}];
    stored = std::move(object);
    log_.push_back({kind, false, stored});
    return stored;
  }
  void Erase(core::Kind kind, const std::string& ns, const std::string& name) {
    auto it = objects_.find({kind, ns, name});
    if (it != objects_.end()) Remove(it);
  }
  Json* Find(core::Kind kind, const std::string& ns, const std::string& name) {
    auto it = objects_.find({kind, ns, name});
    return it == objects_.end() ? nullptr : &it->second;
  }

  // Tells a cache what happened, as its watches would. Pods without the label of the operator are
  // not in a watch.
  void Sync(Cache& cache) {
    for (; told_ < log_.size(); ++told_) Tell(cache, log_[told_]);
  }
  // The lists that a new process begins with.
  void List(Cache& cache) {
    std::vector<core::Job> jobs;
    std::vector<core::Pod> pods;
    std::vector<core::Service> services;
    for (const auto& [id, object] : objects_) {
      const std::string text = core::Dump(object);
      if (std::get<0>(id) == core::Kind::kJob) jobs.push_back(*core::DecodeJob(text));
      if (!Watched(std::get<0>(id), object)) continue;
      if (std::get<0>(id) == core::Kind::kPod) pods.push_back(*core::DecodePod(text));
      if (std::get<0>(id) == core::Kind::kService) {
        services.push_back(*core::DecodeService(text));
      }
    }
    const std::string version = std::to_string(version_);
    cache.Replace("", std::move(jobs), version);
    cache.Replace("", std::move(pods), version);
    cache.Replace("", std::move(services), version);
    told_ = log_.size();
  }

  int Count(const std::string& call) const {
    int n = 0;
    for (const std::string& c : calls) n += c == call;
    return n;
  }
  std::vector<std::string> Names(core::Kind kind) const {
    std::vector<std::string> names;
    for (const auto& [id, object] : objects_) {
      if (std::get<0>(id) == kind) names.push_back(std::get<2>(id));
    }
    return names;
  }

  Fault fault;
  std::vector<std::string> calls;   // every request but events, in order
  std::vector<std::string> writes;  // those that took effect, but for events
  std::vector<Json> events;
  std::map<std::string, std::string> nodes;

 private:
  using Id = std::tuple<core::Kind, std::string, std::string>;
  struct Change {
    core::Kind kind;
    bool deleted;
    Json object;
  };

  static base::Error NotFound(const std::string& name) {
    return {base::ErrorCode::kNotFound, "\"" + name + "\" not found", {}};
  }
  static bool Watched(core::Kind kind, const Json& object) {
    if (kind == core::Kind::kJob) return true;
    const Json& labels = core::Get(core::Get(object, "metadata"), "labels");
    return core::GetString(labels, "training.kubeflow.org/operator-name") ==
           "pytorchjob-controller";
  }

  std::optional<base::Error> Ask(const std::string& call, bool& applied) {
    // Events come from another thread, whenever they come.
    if (call.find("event") == std::string::npos) calls.push_back(call);
    return fault ? fault(call, applied) : std::nullopt;
  }

  template <class Do>
  base::Result<std::string> Write(const std::string& call, Do apply) {
    bool applied = false;
    auto error = Ask(call, applied);
    if (error && !applied) return *error;
    base::Result<std::string> reply = apply();
    if (reply && call.find("event") == std::string::npos) writes.push_back(call);
    if (error) return *error;
    return reply;
  }

  base::Result<std::string> Merge(core::Kind kind, const std::string& ns, const std::string& name,
                                  Json patch) {
    auto it = objects_.find({kind, ns, name});
    if (it == objects_.end()) return NotFound(name);
    const std::string wanted = core::GetString(core::Get(patch, "metadata"), "resourceVersion");
    if (!wanted.empty() && it->second["metadata"]["resourceVersion"] != wanted) {
      return base::Error{base::ErrorCode::kConflict, "the object has been modified", {}};
    }
    Json merged = it->second;
    merged.merge_patch(patch);
    if (drop_own_fields) {
      for (const char* field : {"summary", "observedGeneration", "restartCount", "attempt",
                                "accountedPods", "waiting", "lastFailure"}) {
        merged["status"].erase(field);
      }
    }
    return core::Dump(Put(kind, ns, std::move(merged)));
  }

  Json Remove(std::map<Id, Json>::iterator it) {
    Json last = std::move(it->second);
    last["metadata"]["resourceVersion"] = std::to_string(++version_);
    log_.push_back({std::get<0>(it->first), true, last});
    objects_.erase(it);
    return last;
  }

  void Tell(Cache& cache, const Change& change) {
    const std::string text = core::Dump(change.object);
    const bool deleted = change.deleted || !Watched(change.kind, change.object);
    if (change.kind == core::Kind::kJob) cache.Apply("", *core::DecodeJob(text), deleted);
    if (change.kind == core::Kind::kPod) cache.Apply("", *core::DecodePod(text), deleted);
    if (change.kind == core::Kind::kService) {
      cache.Apply("", *core::DecodeService(text), deleted);
    }
  }

  std::mutex mutex_;
  std::map<Id, Json> objects_;
  std::vector<Change> log_;
  std::size_t told_ = 0;
  int uids_ = 0;
  uint64_t version_ = 100;

 public:
  bool drop_own_fields = false;  // as the CRD of training-operator does
};

}  // namespace runtime
