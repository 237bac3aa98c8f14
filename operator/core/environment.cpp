#include "core/environment.h"

#include <algorithm>
#include <charconv>

#include "core/names.h"

namespace core {
namespace {

const Json& Containers(const Json& pod_template) {
  return Get(Get(pod_template, "spec"), "containers");
}

bool ValidPort(int64_t port) { return port > 0 && port < 65536; }

std::optional<int> NamedPort(const Json& container) {
  const Json& ports = Get(container, "ports");
  if (!ports.is_array()) return std::nullopt;
  for (const Json& port : ports) {
    if (GetString(port, "name") != kPortName) continue;
    if (auto number = GetInt(port, "containerPort"); number && ValidPort(*number)) return number;
  }
  return std::nullopt;
}

std::optional<int> PortVariable(const Json& container) {
  const Json& env = Get(container, "env");
  if (!env.is_array()) return std::nullopt;
  std::optional<int> result;
  for (const Json& entry : env) {
    if (GetString(entry, "name") != "MASTER_PORT") continue;
    std::string text = GetString(entry, "value");
    int value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && ValidPort(value)) {
      result = value;
    }
  }
  return result;
}

int PortOf(const ReplicaSpec& replica) {
  const Json pod_template = Json::parse(replica.template_json, nullptr, false);
  const std::string name = TrainingContainer(pod_template);
  const Json& containers = Containers(pod_template);
  if (!containers.is_array()) return kDefaultPort;
  for (const Json& container : containers) {
    if (GetString(container, "name") != name) continue;
    if (auto port = NamedPort(container)) return *port;
    if (auto port = PortVariable(container)) return *port;
  }
  return kDefaultPort;
}

// Processes a pod as far as it is known here: torchrun resolves auto, cpu and gpu on the node.
int ProcessesPerPod(const std::string& nproc) {
  int value = 0;
  auto [end, error] = std::from_chars(nproc.data(), nproc.data() + nproc.size(), value);
  return error == std::errc() && end == nproc.data() + nproc.size() && value > 0 ? value : 1;
}

void AddElastic(const Job& job, int port, std::vector<Variable>* variables) {
  const ElasticPolicy& elastic = *job.spec.elastic;
  if (job.spec.HasMaster() && !elastic.rdzv_port) {
    if (auto it = job.spec.replicas.find(ReplicaType::kWorker); it != job.spec.replicas.end()) {
      port = PortOf(it->second);
    }
  }
  const std::string host = elastic.rdzv_host.empty()
                               ? PodName(job.key.name, ReplicaType::kWorker, 0)
                               : elastic.rdzv_host;
  variables->push_back(
      {"PET_RDZV_ENDPOINT", host + ":" + std::to_string(elastic.rdzv_port.value_or(port))});
  variables->push_back(
      {"PET_RDZV_BACKEND", elastic.rdzv_backend.empty() ? "c10d" : elastic.rdzv_backend});
  if (!elastic.rdzv_id.empty()) variables->push_back({"PET_RDZV_ID", elastic.rdzv_id});
  std::string conf;
  for (const auto& [key, value] : elastic.rdzv_conf) {
    conf += (conf.empty() ? "" : ",") + key + "=" + value;
  }
  if (!conf.empty()) variables->push_back({"PET_RDZV_CONF", conf});
  // torchrun takes the mere presence of the variable as the flag.
  if (elastic.standalone) variables->push_back({"PET_STANDALONE", ""});
  if (elastic.max_restarts) {
    variables->push_back({"PET_MAX_RESTARTS", std::to_string(*elastic.max_restarts)});
  }
}

}  // namespace

std::string TrainingContainer(const Json& pod_template) {
  const Json& containers = Containers(pod_template);
  if (!containers.is_array() || containers.size() != 1) return "pytorch";
  std::string name = GetString(containers[0], "name");
  return name.empty() ? "pytorch" : name;
}

int RendezvousPort(const JobSpec& spec) {
  auto it = spec.replicas.find(RendezvousType(spec));
  return it == spec.replicas.end() ? kDefaultPort : PortOf(it->second);
}

std::vector<Variable> RendezvousVariables(const Job& job, ReplicaType type, int index, int port) {
  const JobSpec& spec = job.spec;
  const std::string address = PodName(job.key.name, RendezvousType(spec), 0);
  const std::string rank = std::to_string(Rank(spec, type, index));
  const int total = spec.TotalReplicas();
  const std::string nproc = !spec.nproc_per_node.empty() || !spec.elastic
                                ? spec.nproc_per_node
                                : std::to_string(spec.elastic->nproc_per_node.value_or(1));
  const std::string nodes = spec.elastic
                                ? std::to_string(spec.elastic->min_replicas.value_or(1)) + ":" +
                                      std::to_string(spec.elastic->max_replicas.value_or(1))
                                : std::to_string(total);
  const int64_t world = int64_t{total} * ProcessesPerPod(spec.nproc_per_node);
  std::vector<Variable> variables = {{"MASTER_PORT", std::to_string(port)},
                                     {"MASTER_ADDR", address},
                                     {"WORLD_SIZE", std::to_string(world)},
                                     {"RANK", rank},
                                     {"PET_MASTER_PORT", std::to_string(port)},
                                     {"PET_MASTER_ADDR", address},
                                     {"PET_NPROC_PER_NODE", nproc},
                                     {"PET_NODE_RANK", rank},
                                     {"PET_NNODES", nodes}};
  if (spec.elastic) AddElastic(job, port, &variables);
  return variables;
}

void ApplyVariables(const std::vector<Variable>& variables, Json* container,
                    std::vector<std::string>* replaced) {
  Json env = Json::array();
  const Json& old = Get(*container, "env");
  auto find = [](const std::vector<Variable>& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const Variable& v) { return v.name == name; });
  };
  std::vector<std::string> placed;
  bool unbuffered = false;
  if (old.is_array()) {
    for (const Json& entry : old) {
      const std::string name = GetString(entry, "name");
      unbuffered = unbuffered || name == "PYTHONUNBUFFERED";
      auto variable = find(variables, name);
      if (variable == variables.end()) {
        env.push_back(entry);
        continue;
      }
      const bool same =
          !entry.contains("valueFrom") && GetString(entry, "value") == variable->value;
      if (!same && replaced != nullptr &&
          std::find(replaced->begin(), replaced->end(), name) == replaced->end()) {
        replaced->push_back(name);
      }
      if (std::find(placed.begin(), placed.end(), name) != placed.end()) continue;
      placed.push_back(name);
      env.push_back({{"name", name}, {"value", variable->value}});
    }
  }
  // Ours come first, so that the template's own variables may refer to them: $(MASTER_ADDR).
  Json all = Json::array();
  if (!unbuffered) all.push_back({{"name", "PYTHONUNBUFFERED"}, {"value", "1"}});
  for (const Variable& variable : variables) {
    if (std::find(placed.begin(), placed.end(), variable.name) != placed.end()) continue;
    all.push_back({{"name", variable.name}, {"value", variable.value}});
  }
  for (Json& entry : env) all.push_back(std::move(entry));
  (*container)["env"] = std::move(all);
}

}  // namespace core
