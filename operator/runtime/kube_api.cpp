#include "runtime/kube_api.h"

#include <utility>

namespace runtime {
namespace {

const kube::Resource kNodes{"", "v1", "nodes"};
const kube::Resource kEvents{"", "v1", "events"};

}  // namespace

kube::Resource ResourceOf(core::Kind kind, const std::string& gang_scheduler) {
  switch (kind) {
    case core::Kind::kJob:
      return {"kubeflow.org", "v1", "pytorchjobs"};
    case core::Kind::kPod:
      return {"", "v1", "pods"};
    case core::Kind::kService:
      return {"", "v1", "services"};
    case core::Kind::kPodGroup:
      if (gang_scheduler == "volcano") return {"scheduling.volcano.sh", "v1beta1", "podgroups"};
      return {"scheduling.x-k8s.io", "v1alpha1", "podgroups"};
    case core::Kind::kAutoscaler:
      return {"autoscaling", "v2", "horizontalpodautoscalers"};
  }
  return {};
}

KubeApi::KubeApi(kube::Client& client, std::string gang_scheduler, std::function<bool()> may_write)
    : client_(client),
      gang_scheduler_(std::move(gang_scheduler)),
      may_write_(std::move(may_write)) {}

template <class Write>
base::Result<std::string> KubeApi::Guarded(Write write) {
  if (!may_write_()) {
    return base::Error{base::ErrorCode::kCancelled, "not written: this process does not lead", {}};
  }
  return write();
}

base::Result<std::string> KubeApi::Get(core::Kind kind, const std::string& ns,
                                       const std::string& name) {
  return client_.Get(ResourceOf(kind, gang_scheduler_), ns, name);
}

base::Result<std::string> KubeApi::GetNode(const std::string& name) {
  return client_.Get(kNodes, "", name);
}

base::Result<std::string> KubeApi::Create(core::Kind kind, const std::string& ns,
                                          const std::string& body) {
  return Guarded([&] { return client_.Create(ResourceOf(kind, gang_scheduler_), ns, body); });
}

base::Result<std::string> KubeApi::PatchStatus(const core::JobKey& job, const std::string& body) {
  return Guarded([&] {
    return client_.MergePatch(ResourceOf(core::Kind::kJob, ""), job.ns, job.name, "status", body);
  });
}

base::Result<std::string> KubeApi::Patch(core::Kind kind, const std::string& ns,
                                         const std::string& name, const std::string& body) {
  return Guarded(
      [&] { return client_.MergePatch(ResourceOf(kind, gang_scheduler_), ns, name, "", body); });
}

// The propagation policy is the server's default, which is Background for jobs (custom resources)
// as for pods and Services: dependents are collected after the object has gone.
base::Result<std::string> KubeApi::Delete(const std::string& ns, const core::Delete& what) {
  return Guarded([&] {
    kube::DeleteOptions options;
    options.uid = what.uid;
    options.grace_seconds = what.grace_seconds;
    return client_.Delete(ResourceOf(what.kind, gang_scheduler_), ns, what.name, options);
  });
}

base::Result<std::string> KubeApi::CreateEvent(const std::string& ns, const std::string& body) {
  return Guarded([&] { return client_.Create(kEvents, ns, body); });
}

base::Result<std::string> KubeApi::PatchEvent(const std::string& ns, const std::string& name,
                                              const std::string& body) {
  return Guarded([&] { return client_.MergePatch(kEvents, ns, name, "", body); });
}

}  // namespace runtime
