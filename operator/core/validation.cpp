#include "core/validation.h"

#include <algorithm>

#include "core/validation_field.h"

namespace core {

namespace {

constexpr int64_t kMaxReplicas = 100000;
constexpr size_t kMaxLabel = 63;

// Whether `text` is a DNS-1035 label: [a-z]([-a-z0-9]*[a-z0-9])?, at most 63 characters.
bool IsDns1035Label(std::string_view text) {
  auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > kMaxLabel || !lower(text.front()) || text.back() == '-') {
    return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return lower(c) || digit(c) || c == '-'; });
}

// auto, cpu, gpu, or a positive number of at most nine digits besides leading zeros.
bool IsProcessCount(std::string_view text) {
  if (text == "auto" || text == "cpu" || text == "gpu") return true;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Takes digits with at most one point from the front of `text`; true when there was a digit.
bool TakeDecimal(std::string_view& text) {
  size_t digits = 0;
  size_t i = 0;
  for (bool point = false; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      ++digits;
    } else if (text[i] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  text.remove_prefix(i);
  return digits > 0;
}

void TakeSign(std::string_view& text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
}

// The grammar of resource.Quantity: a signed decimal, then nothing, a binary or decimal suffix, or
// an exponent. An "E" alone is the suffix exa.
bool IsQuantity(std::string_view text) {
  TakeSign(text);
  if (!TakeDecimal(text)) return false;
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') {
    return std::string_view("KMGTPE").find(text[0]) != std::string_view::npos;
  }
  if (text.size() == 1)
    return std::string_view("numkMGTPE").find(text[0]) != std::string_view::npos;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  TakeSign(text);
  return TakeDecimal(text) && text.empty();
}

void CheckQuantities(const Field& resources) {
  if (!resources.IsObject()) return;
  for (const auto& [name, value] : resources.value().items()) {
    if (resources.Full()) return;
    if (value.is_null() || value.is_number_integer()) continue;
    Field quantity = resources[name];
    if (!value.is_string()) {
      quantity.Invalid("must be of type integer,string");
    } else if (!IsQuantity(value.get_ref<const std::string&>())) {
      quantity.Invalid("should match the form of a quantity, such as 2, 500m or 1.5Gi");
    }
  }
}

void CheckContainer(const Field& container) {
  if (!container.Require() || !container.IsObject()) return;
  if (Field name = container["name"]; name.Require()) name.IsString();
  Field image = container["image"];
  if (image.Require() && image.IsString() && image.value().get_ref<const std::string&>().empty()) {
    image.Invalid("should be at least 1 chars long");
  }
}

// Checks each container and that no two share a name; returns the names.
std::set<std::string> CheckContainers(const Field& containers) {
  std::set<std::string> names;
  if (!containers.IsArray()) return names;
  for (size_t i = 0; i < containers.value().size() && !containers.Full(); ++i) {
    Field container = containers.At(i);
    CheckContainer(container);
    const Json& name = container["name"].value();
    if (name.is_string() && !names.insert(name.get<std::string>()).second) {
      container.Fail("Duplicate value: " + Quoted(name));
    }
  }
  return names;
}

void CheckTemplate(const Field& pod) {
  if (!pod.Require() || !pod.IsObject()) return;
  if (Field metadata = pod["metadata"]; metadata.IsObject()) {
    metadata["labels"].MapOfStrings();
    metadata["annotations"].MapOfStrings();
    metadata["finalizers"].ArrayOfStrings();
  }
  Field spec = pod["spec"];
  if (!spec.Require() || !spec.IsObject()) return;
  CheckContainers(spec["initContainers"]);
  Field containers = spec["containers"];
  if (!containers.Require()) return;
  const std::set<std::string> names = CheckContainers(containers);
  if (!containers.value().is_array()) return;
  if (containers.value().empty()) {
    containers.Fail("Invalid value: 0: should have at least 1 items");
  } else if (containers.value().size() > 1 && !names.contains("pytorch")) {
    containers.Invalid("one of several containers must be named pytorch");
  }
}

// Checks one replica type; returns its number of pods, none when that is not known.
std::optional<int64_t> CheckReplica(const Field& replica) {
  if (!replica.IsObject()) return std::nullopt;
  Field replicas = replica["replicas"];
  const auto count = replicas.Present() ? replicas.Integer(0, kMaxReplicas) : 1;
  replica["restartPolicy"].OneOf({"Always", "OnFailure", "Never", "ExitCode"}, true);
  CheckTemplate(replica["template"]);
  return count;
}

struct Replicas {
  bool has_master = false;
  bool has_worker = false;
  std::optional<int64_t> workers;  // none: invalid or no Worker
};

Replicas CheckReplicas(const Field& types) {
  Replicas result;
  if (!types.Require() || !types.IsObject()) return result;
  size_t present = 0;
  for (const auto& [type, replica] : types.value().items()) {
    if (replica.is_null()) continue;
    ++present;
    if (type != "Master" && type != "Worker") {
      types.Invalid("unknown replica type " + Quoted(type) +
                    ": only Master and Worker are supported");
    }
  }
  if (present == 0) types.Fail("Invalid value: 0: should have at least 1 properties");
  Field master = types["Master"];
  Field worker = types["Worker"];
  result.has_master = master.Present();
  result.has_worker = worker.Present();
  if (auto count = CheckReplica(master); result.has_master && count && *count != 1) {
    master["replicas"].Invalid("must be 1");
  }
  if (result.has_worker) result.workers = CheckReplica(worker);
  if (!result.has_master && result.workers == 0) {
    worker["replicas"].Invalid("must be at least 1 without a Master");
  }
  return result;
}

void CheckElasticPolicy(const Field& elastic, const Field& spec, const Replicas& replicas) {
  if (!elastic.IsObject()) return;
  if (!replicas.has_worker) {
    elastic.Invalid("needs spec.pytorchReplicaSpecs.Worker");
  }
  const auto min = elastic["minReplicas"].Int32();
  const auto max = elastic["maxReplicas"].Int32();
  elastic["nProcPerNode"].Integer(1, INT32_MAX);
  for (const char* key : {"rdzvPort", "maxRestarts"}) elastic[key].Int32();
  for (const char* key : {"rdzvBackend", "rdzvHost", "rdzvId"}) elastic[key].IsString();
  elastic["standalone"].IsBoolean();
  if (Field conf = elastic["rdzvConf"]; conf.IsArray()) {
    for (size_t i = 0; i < conf.value().size() && !conf.Full(); ++i) {
      Field option = conf.At(i);
      if (!option.Require() || !option.IsObject()) continue;
      option["key"].IsString();
      option["value"].IsString();
    }
  }
  elastic["metrics"].IsArray();
  if (elastic["nProcPerNode"].Present() && spec["nprocPerNode"].Present()) {
    elastic["nProcPerNode"].Invalid("must not be set together with spec.nprocPerNode");
  }
  if (min && max && *min > *max) {
    elastic["minReplicas"].Invalid("must not be greater than maxReplicas");
  } else if (replicas.workers &&
             ((min && *replicas.workers < *min) || (max && *replicas.workers > *max))) {
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"].Invalid(
        "must lie between elasticPolicy.minReplicas and elasticPolicy.maxReplicas");
  }
}

void CheckRunPolicy(const Field& policy) {
  if (!policy.IsObject()) return;
  policy["activeDeadlineSeconds"].Integer(1, INT64_MAX);
  policy["backoffLimit"].Integer(0, INT32_MAX);
  policy["cleanPodPolicy"].OneOf({"All", "Running", "None"}, true);
  policy["managedBy"].OneOf({"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"}, false);
  policy["restartScope"].OneOf({"Replica", "Job"}, false);
  policy["suspend"].IsBoolean();
  policy["ttlSecondsAfterFinished"].Integer(0, INT32_MAX);
  Field scheduling = policy["schedulingPolicy"];
  if (!scheduling.IsObject()) return;
  scheduling["minAvailable"].Int32();
  scheduling["scheduleTimeoutSeconds"].Int32();
  scheduling["priorityClass"].IsString();
  scheduling["queue"].IsString();
  CheckQuantities(scheduling["minResources"]);
}

void CheckName(const Field& name, const Replicas& replicas) {
  if (!name.Require() || !name.IsString()) return;
  const auto& text = name.value().get_ref<const std::string&>();
  if (!IsDns1035Label(text)) {
    name.Invalid(
        "must be a DNS-1035 label: lower case letters, digits and '-', begins with a "
        "letter, ends with a letter or digit, at most 63 characters");
    return;
  }
  std::string longest;
  if (replicas.workers.value_or(0) > 0) {
    longest = text + "-worker-" + std::to_string(*replicas.workers - 1);
  } else if (replicas.has_master) {
    longest = text + "-master-0";
  }
  if (longest.size() > kMaxLabel) {
    name.Invalid("too long: the pod name " + longest + " must not exceed 63 characters");
  }
}

}  // namespace

std::vector<FieldError> Validate(const nlohmann::json& job) {
  FieldErrors errors;
  Field root(job, "", errors);
  Field spec = root["spec"];
  FieldErrors spec_errors;
  Replicas replicas;
  if (Field body(spec.value(), "spec", spec_errors); body.Require() && body.IsObject()) {
    replicas = CheckReplicas(body["pytorchReplicaSpecs"]);
    if (Field nproc = body["nprocPerNode"];
        nproc.IsString() && !IsProcessCount(nproc.value().get_ref<const std::string&>())) {
      nproc.Invalid("should match auto, cpu, gpu or a positive number");
    }
    CheckElasticPolicy(body["elasticPolicy"], body, replicas);
    CheckRunPolicy(body["runPolicy"]);
  }
  CheckName(root["metadata"]["name"], replicas);
  for (FieldError& error : std::move(spec_errors).Take()) {
    errors.Add(error.path, std::move(error.message));
  }
  return std::move(errors).Take();
}

std::string Describe(const std::vector<FieldError>& errors, std::size_t max_bytes) {
  std::string text;
  for (size_t i = 0; i < errors.size(); ++i) {
    const std::string item = errors[i].path + ": " + errors[i].message;
    if (i > 0 && text.size() + 2 + item.size() > max_bytes) {
      return text + "; and " + std::to_string(errors.size() - i) + " more";
    }
    text += (i > 0 ? "; " : "") + item;
  }
  return text;
}

}  // namespace core
