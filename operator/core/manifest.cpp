#include "core/manifest.h"

#include <algorithm>

#include "core/environment.h"
#include "core/names.h"
#include "core/policy/gang.h"

namespace core {
namespace {

std::string PodRestartPolicy(const RunPolicy& run_policy, RestartPolicy policy) {
  if (run_policy.restart_scope == RestartScope::kJob) return "Never";
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
    case RestartPolicy::kExitCode:
      break;
  }
  return "Never";
}

// Adds the rendezvous port to the training container unless a port of that name is there.
void AddPort(int port, Json* container) {
  Json& ports = (*container)["ports"];
  if (!ports.is_array()) ports = Json::array();
  for (const Json& item : ports) {
    if (GetString(item, "name") == kPortName) return;
  }
  ports.push_back({{"name", kPortName}, {"containerPort", port}, {"protocol", "TCP"}});
}

// Waits until the rendezvous host's name resolves, for images whose client gives up on a name that
// does not (PyTorch before 1.10). 100 tries, two seconds apart, as training-operator does.
Json InitContainer(const std::string& image, const std::string& address) {
  static constexpr char kScript[] =
      "n=0; until getent hosts \"$MASTER_ADDR\" >/dev/null 2>&1 || "
      "nslookup \"$MASTER_ADDR\" >/dev/null 2>&1; do n=$((n+1)); "
      "if [ $n -ge 100 ]; then echo \"$MASTER_ADDR does not resolve\" >&2; exit 1; fi; "
      "sleep 2; done";
  return {
      {"name", "init-pytorch"},
      {"image", image},
      {"imagePullPolicy", "IfNotPresent"},
      {"command", {"sh", "-c", kScript}},
      {"env", Json::array({Json{{"name", "MASTER_ADDR"}, {"value", address}}})},
      {"resources",
       {{"limits", {{"cpu", "100m"}, {"memory", "20Mi"}}},
        {"requests", {{"cpu", "50m"}, {"memory", "10Mi"}}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", Json::array({"ALL"})}}}}}};
}

}  // namespace

bool ServicePerReplica(const Job& job, const Options& options) {
  return options.service_per_replica || job.spec.elastic.has_value();
}

Json ChildMetadata(const Job& job, const std::string& name, Json labels) {
  return {{"name", name},
          {"namespace", job.key.ns},
          {"labels", labels},
          {"ownerReferences", Json::array({Json{{"apiVersion", kApiVersion},
                                                {"kind", kJobKind},
                                                {"name", job.key.name},
                                                {"uid", job.uid},
                                                {"controller", true},
                                                {"blockOwnerDeletion", true}}})}};
}

Manifests::Manifests(const Job& job, const Options& options)
    : job_(job), options_(options), port_(RendezvousPort(job.spec)) {
  for (const auto& [type, replica] : job.spec.replicas) {
    templates_[type] = Json::parse(replica.template_json, nullptr, false);
  }
}

bool Manifests::WantsInitContainer(ReplicaType type, int index) const {
  if (options_.init_container_image.empty()) return false;
  if (type == RendezvousType(job_.spec) && index == 0) return false;
  auto it = job_.annotations.find(kInitContainerAnnotation);
  return it == job_.annotations.end() || it->second != "never";
}

std::string Manifests::Pod(ReplicaType type, int index, int replacement) const {
  const ReplicaSpec& replica = job_.spec.replicas.at(type);
  const Json& source = templates_.at(type);
  Json labels = Get(Get(source, "metadata"), "labels");
  if (!labels.is_object()) labels = Json::object();
  labels.update(ReplicaLabels(job_, type, index));
  if (job_.spec.run_policy.restart_scope == RestartScope::kJob) {
    labels[kAttemptLabel] = std::to_string(job_.status.attempt);
  }
  Json metadata = ChildMetadata(job_, PodName(job_.key.name, type, index), labels);
  Json annotations = Get(Get(source, "metadata"), "annotations");
  if (!annotations.is_object()) annotations = Json::object();
  if (replacement > 0) annotations[kReplacementAnnotation] = std::to_string(replacement);
  if (job_.status.start_time) {
    annotations[kIncarnationAnnotation] = FormatTime(*job_.status.start_time);
  }
  metadata["annotations"] = std::move(annotations);
  if (const Json& finalizers = Get(Get(source, "metadata"), "finalizers"); finalizers.is_array()) {
    metadata["finalizers"] = finalizers;
  }

  Json spec = Get(source, "spec");
  if (!spec.is_object()) spec = Json::object();
  spec["restartPolicy"] = PodRestartPolicy(job_.spec.run_policy, replica.restart_policy);
  const std::string training = TrainingContainer(source);
  const bool rendezvous_host = type == RendezvousType(job_.spec) && index == 0;
  const auto variables = RendezvousVariables(job_, type, index, port_);
  if (spec["containers"].is_array()) {
    for (Json& container : spec["containers"]) {
      if (!container.is_object()) continue;
      ApplyVariables(variables, &container, nullptr);
      // With hostNetwork a declared port is taken on the node: only the host that listens has it.
      if (GetString(container, "name") == training &&
          (rendezvous_host || !GetBool(spec, "hostNetwork"))) {
        AddPort(port_, &container);
      }
    }
  }
  if (WantsInitContainer(type, index)) {
    Json& init = spec["initContainers"];
    if (!init.is_array()) init = Json::array();
    init.push_back(InitContainer(options_.init_container_image,
                                 PodName(job_.key.name, RendezvousType(job_.spec), 0)));
  }
  JoinGang(job_, options_, type, &metadata, &spec);
  return Dump({{"apiVersion", "v1"},
               {"kind", "Pod"},
               {"metadata", std::move(metadata)},
               {"spec", std::move(spec)}});
}

std::string Manifests::Service(ReplicaType type, int index) const {
  Json labels = ReplicaLabels(job_, type, index);
  labels.erase("job-role");
  labels.erase("training.kubeflow.org/job-role");
  return Dump({{"apiVersion", "v1"},
               {"kind", "Service"},
               {"metadata", ChildMetadata(job_, PodName(job_.key.name, type, index), labels)},
               {"spec",
                {{"clusterIP", "None"},
                 {"publishNotReadyAddresses", true},
                 {"selector", SelectorLabels(job_.key.name, type, index)},
                 {"ports", Json::array({Json{{"name", kPortName},
                                             {"port", port_},
                                             {"targetPort", port_},
                                             {"protocol", "TCP"}}})}}}});
}

std::vector<Event> Manifests::Warnings() const {
  std::vector<Event> events;
  std::vector<std::string> replaced;
  std::vector<std::string> restart_policies;
  for (const auto& [type, source] : templates_) {
    const Json& spec = Get(source, "spec");
    const std::string own = GetString(spec, "restartPolicy");
    const std::string ours =
        PodRestartPolicy(job_.spec.run_policy, job_.spec.replicas.at(type).restart_policy);
    if (!own.empty() && own != ours) restart_policies.emplace_back(Name(type));
    if (!Get(spec, "containers").is_array()) continue;
    // A RANK that is right for the first pod is wrong for the others.
    for (int index : {0, std::max(0, job_.spec.Replicas(type) - 1)}) {
      const auto variables = RendezvousVariables(job_, type, index, port_);
      for (Json container : Get(spec, "containers")) {
        if (container.is_object()) ApplyVariables(variables, &container, &replaced);
      }
    }
  }
  if (!restart_policies.empty()) {
    events.push_back({true, "SetPodTemplateRestartPolicy",
                      "Restart policy in pod template will be overwritten by restart policy in "
                      "replica spec"});
  }
  if (!replaced.empty()) {
    std::string names;
    for (const std::string& name : replaced) names += (names.empty() ? "" : ", ") + name;
    events.push_back({true, "ReplacedEnvironmentVariable",
                      "The pod template sets " + names +
                          "; the operator's own values replace it, remove it from the template"});
  }
  auto annotation = job_.annotations.find(kInitContainerAnnotation);
  if (annotation != job_.annotations.end() && annotation->second == "always" &&
      options_.init_container_image.empty()) {
    events.push_back({true, "NoInitContainer",
                      std::string("The annotation ") + kInitContainerAnnotation +
                          " asks for an init container, but the operator runs without "
                          "--init-container-image: none is added"});
  }
  for (Event& event : GangWarnings(job_, options_)) events.push_back(std::move(event));
  return events;
}

std::string LabelPatch(const Job& job, ReplicaType type, int index) {
  return Dump({{"metadata", {{"labels", ReplicaLabels(job, type, index)}}}});
}

}  // namespace core
