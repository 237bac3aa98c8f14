#include "core/names.h"

#include <charconv>

namespace core {

std::string_view Name(ReplicaType type) {
  return type == ReplicaType::kMaster ? "Master" : "Worker";
}

std::string_view LowerName(ReplicaType type) {
  return type == ReplicaType::kMaster ? "master" : "worker";
}

std::string PodName(const std::string& job, ReplicaType type, int index) {
  return job + "-" + std::string(LowerName(type)) + "-" + std::to_string(index);
}

std::optional<ReplicaName> ParsePodName(std::string_view job, std::string_view pod) {
  if (job.empty() || !pod.starts_with(job)) return std::nullopt;
  std::string_view rest = pod.substr(job.size());
  for (ReplicaType type : {ReplicaType::kMaster, ReplicaType::kWorker}) {
    std::string prefix = "-" + std::string(LowerName(type)) + "-";
    if (!rest.starts_with(prefix)) continue;
    std::string_view digits = rest.substr(prefix.size());
    int index = -1;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
        std::to_string(index) == digits) {
      return ReplicaName{type, index};
    }
  }
  return std::nullopt;
}

ReplicaType RendezvousType(const JobSpec& spec) {
  return spec.HasMaster() ? ReplicaType::kMaster : ReplicaType::kWorker;
}

int Rank(const JobSpec& spec, ReplicaType type, int index) {
  if (type == ReplicaType::kMaster) return index;
  return index + spec.Replicas(ReplicaType::kMaster);
}

Json SelectorLabels(const std::string& job, ReplicaType type, int index) {
  return {{kOperatorNameLabel, kOperatorName},
          {kJobNameLabel, job},
          {kReplicaTypeLabel, std::string(LowerName(type))},
          {kReplicaIndexLabel, std::to_string(index)}};
}

Json ReplicaLabels(const Job& job, ReplicaType type, int index) {
  const std::string lower(LowerName(type));
  const std::string number = std::to_string(index);
  Json labels = SelectorLabels(job.key.name, type, index);
  labels["group-name"] = "kubeflow.org";
  labels["controller-name"] = "pytorch-operator";
  labels["job-name"] = job.key.name;
  labels["pytorch-job-name"] = job.key.name;
  labels["replica-type"] = lower;
  labels["replica-index"] = number;
  labels["pytorch-replica-type"] = lower;
  labels["pytorch-replica-index"] = number;
  if (index == 0 && type == RendezvousType(job.spec)) {
    labels["training.kubeflow.org/job-role"] = "master";
    labels["job-role"] = "master";
  }
  return labels;
}

std::string SelectorText(const std::string& job, ReplicaType type) {
  return std::string(kJobNameLabel) + "=" + job + "," + kOperatorNameLabel + "=" + kOperatorName +
         "," + kReplicaTypeLabel + "=" + std::string(LowerName(type));
}

std::string Truncated(std::string text, size_t limit) {
  static constexpr std::string_view kEllipsis = "…";
  if (text.size() <= limit) return text;
  size_t end = limit > kEllipsis.size() ? limit - kEllipsis.size() : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + std::string(kEllipsis);
}

}  // namespace core
