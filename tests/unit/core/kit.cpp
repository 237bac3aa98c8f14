#include "kit.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "core/names.h"

namespace core::test {

const TimePoint kStart = *ParseTime("2026-03-01T12:00:00Z");

namespace {

Json FromNode(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& item : node) object[item.first.Scalar()] = FromNode(item.second);
      return object;
    }
    case YAML::NodeType::Sequence: {
      Json array = Json::array();
      for (const auto& item : node) array.push_back(FromNode(item));
      return array;
    }
    case YAML::NodeType::Scalar: {
      const std::string& text = node.Scalar();
      if (node.Tag() == "!") return text;  // quoted
      if (text == "true" || text == "false") return text == "true";
      Json number = Json::parse(text, nullptr, false);
      return number.is_number() ? number : Json(text);
    }
    default:
      return nullptr;
  }
}

Json Replica(int count, const std::string& restart_policy) {
  Json replica = {
      {"replicas", count},
      {"template",
       {{"spec",
         {{"containers", Json::array({Json{{"name", "pytorch"}, {"image", "mnist:1"}}})}}}}}};
  if (!restart_policy.empty()) replica["restartPolicy"] = restart_policy;
  return replica;
}

bool Terminating(const Json& object) { return object["metadata"].contains("deletionTimestamp"); }

std::string KindAndName(Kind kind, const std::string& name) {
  return std::string(Name(kind)) + " " + name;
}

}  // namespace

Json FromYaml(const std::string& text) { return FromNode(YAML::Load(text)); }

std::string Conditions(const Json& status) {
  std::string text;
  for (const Json& condition : status.value("conditions", Json::array())) {
    text += (text.empty() ? "[" : ", ") + condition["type"].get<std::string>() + "=" +
            condition["status"].get<std::string>()[0];
  }
  return text.empty() ? "[]" : text + "]";
}

std::vector<std::string> Lines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Action& action : plan.actions) {
    if (std::holds_alternative<WriteStatus>(action)) lines.push_back("status");
    if (auto* a = std::get_if<Create>(&action)) {
      lines.push_back("create " + KindAndName(a->kind, a->name));
    }
    if (auto* a = std::get_if<Delete>(&action)) {
      lines.push_back((a->grace_seconds == 0 ? "force " : "delete ") +
                      KindAndName(a->kind, a->name));
    }
    if (auto* a = std::get_if<Patch>(&action)) {
      lines.push_back("patch " + KindAndName(a->kind, a->name));
    }
  }
  return lines;
}

std::vector<std::string> Lines(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    lines.push_back(std::string(event.warning ? "Warning " : "Normal ") + event.reason + ": " +
                    event.message);
  }
  return lines;
}

Json OwnedMetadata(const Json& job, const std::string& name) {
  const std::string job_name = job["metadata"]["name"];
  Json labels = {{kOperatorNameLabel, kOperatorName}, {kJobNameLabel, job_name}};
  if (auto replica = ParsePodName(job_name, name)) {
    labels.update(SelectorLabels(job_name, replica->type, replica->index));
  }
  return {{"name", name},
          {"namespace", job["metadata"]["namespace"]},
          {"uid", "uid-" + name},
          {"creationTimestamp", FormatTime(kStart)},
          {"labels", labels},
          {"ownerReferences", Json::array({Json{{"apiVersion", kApiVersion},
                                                {"kind", kJobKind},
                                                {"name", job_name},
                                                {"uid", job["metadata"]["uid"]},
                                                {"controller", true}}})}};
}

Json MakeJob(bool master, int workers, const std::string& restart_policy) {
  Json replicas = Json::object();
  if (master) replicas["Master"] = Replica(1, restart_policy);
  if (workers > 0) replicas["Worker"] = Replica(workers, restart_policy);
  return {{"apiVersion", kApiVersion},
          {"kind", kJobKind},
          {"metadata", {{"name", "mnist"}, {"namespace", "demo"}}},
          {"spec", {{"pytorchReplicaSpecs", replicas}}}};
}

Scene::Scene(Json new_job) : job(std::move(new_job)) {
  Json metadata = {{"namespace", "demo"},
                   {"uid", "job-uid"},
                   {"generation", 1},
                   {"creationTimestamp", FormatTime(kStart)}};
  metadata.merge_patch(job["metadata"]);
  metadata["resourceVersion"] = std::to_string(revision_);
  job["metadata"] = std::move(metadata);
  if (!job.contains("status")) job["status"] = Json::object();
}

Snapshot Scene::Observe() const {
  const std::string uid = job["metadata"]["uid"];
  auto decode = [&](const Json& json) {
    return std::make_shared<const Pod>(DecodePod(json.dump()).value());
  };
  Snapshot snapshot;
  snapshot.job = std::make_shared<const Job>(DecodeJob(job.dump()).value());
  for (const auto& [name, json] : pods) {
    if (auto pod = decode(json); pod->owner_uid == uid) snapshot.pods.push_back(pod);
  }
  for (const auto& [name, json] : services) {
    auto service = std::make_shared<const Service>(DecodeService(json.dump()).value());
    if (service->owner_uid == uid) snapshot.services.push_back(service);
  }
  for (const auto& [name, gone] : departed_) {
    snapshot.departed.push_back({decode(gone.first), gone.second});
  }
  if (pod_group) snapshot.pod_group = DecodePodGroup(pod_group->dump()).value();
  if (autoscaler) snapshot.autoscaler = DecodeAutoscaler(autoscaler->dump()).value();
  snapshot.holders = holders;
  snapshot.create_errors = create_errors;
  snapshot.nodes = nodes;
  snapshot.status_written = status_written;
  return snapshot;
}

Plan Scene::Look() const { return Decide(Observe(), now, options); }

void Scene::Apply(const Action& action) {
  auto find = [&](Kind kind, const std::string& name) -> Json* {
    if (kind == Kind::kJob) return &job;
    if (kind == Kind::kPodGroup) return pod_group ? &*pod_group : nullptr;
    if (kind == Kind::kAutoscaler) return autoscaler ? &*autoscaler : nullptr;
    auto& objects = kind == Kind::kPod ? pods : services;
    auto it = objects.find(name);
    return it == objects.end() ? nullptr : &it->second;
  };
  if (auto* write = std::get_if<WriteStatus>(&action)) {
    const Json patch = Json::parse(write->patch);
    EXPECT_EQ(patch["metadata"], Json({{"resourceVersion", job["metadata"]["resourceVersion"]}}));
    job["status"].merge_patch(patch["status"]);
    job["metadata"]["resourceVersion"] = std::to_string(++revision_);
    if (remembers_writes) status_written = now;
    events.insert(events.end(), write->events.begin(), write->events.end());
    transitions.insert(transitions.end(), write->transitions.begin(), write->transitions.end());
  } else if (auto* create = std::get_if<Create>(&action)) {
    Json object = Json::parse(create->body);
    EXPECT_EQ(object["metadata"]["name"], create->name);
    EXPECT_EQ(find(create->kind, create->name), nullptr) << create->name << " is there already";
    object["metadata"]["uid"] = create->name + "-" + std::to_string(++revision_);
    object["metadata"]["creationTimestamp"] = FormatTime(now);
    if (create->kind == Kind::kPod) {
      object["status"] = {{"phase", "Pending"}};
      departed_.erase(create->name);
      pods[create->name] = object;
    }
    if (create->kind == Kind::kService) services[create->name] = object;
    if (create->kind == Kind::kPodGroup) pod_group = object;
    if (create->kind == Kind::kAutoscaler) autoscaler = object;
    std::erase_if(create_errors, [&](const CreateError& error) {
      return error.kind == create->kind && error.name == create->name;
    });
  } else if (auto* removal = std::get_if<Delete>(&action)) {
    Json* object = find(removal->kind, removal->name);
    ASSERT_NE(object, nullptr) << removal->name << " is not there";
    EXPECT_EQ((*object)["metadata"]["uid"], removal->uid);
    if (removal->grace_seconds == 0) {
      Remove(removal->name);
    } else {
      (*object)["metadata"]["deletionTimestamp"] = FormatTime(now + seconds{30});
    }
  } else if (auto* patch = std::get_if<Patch>(&action)) {
    Json* object = find(patch->kind, patch->name);
    ASSERT_NE(object, nullptr) << patch->name << " is not there";
    object->merge_patch(Json::parse(patch->body));
  }
}

void Scene::ExpectLegalStatus() const {
  if (!status().contains("conditions")) return;
  const Json& conditions = status()["conditions"];
  EXPECT_EQ(conditions.back()["status"], "True") << Conditions(status());
  const std::set<std::string> exclusive = {"Running", "Restarting", "Suspended", "Succeeded",
                                           "Failed"};
  std::set<std::string> seen;
  int true_ones = 0;
  for (const Json& condition : conditions) {
    const std::string type = condition["type"];
    EXPECT_TRUE(seen.insert(type).second) << type << " twice in " << Conditions(status());
    const bool is_true = condition["status"] == "True";
    if (exclusive.contains(type) && is_true) ++true_ones;
    if (type == "Succeeded" || type == "Failed") {
      EXPECT_TRUE(is_true) << Conditions(status());
    }
  }
  EXPECT_LE(true_ones, 1) << Conditions(status());
  if (true_ones == 1) {
    EXPECT_EQ(conditions.front()["type"], "Created") << Conditions(status());
    EXPECT_TRUE(exclusive.contains(conditions.back()["type"])) << Conditions(status());
  }
}

// Where the scene stands, without what differs between two runs of the same story.
static Json Outcome(Scene scene) {
  Json outcome = {{"status", scene.status()}, {"children", scene.Children()}};
  for (auto& [name, pod] : scene.pods) outcome["pods"][name] = pod["metadata"]["annotations"];
  return outcome;
}

void Scene::ExpectPrefixesConverge(const Plan& plan) const {
  Scene whole = *this;
  for (const Action& action : plan.actions) whole.Apply(action);
  const Json expected = Outcome(whole);
  for (size_t count = 0; count < plan.actions.size(); ++count) {
    Scene died = *this;
    for (size_t i = 0; i < count; ++i) died.Apply(plan.actions[i]);
    if (count > 0) died.ExpectLegalStatus();  // what was there before may be of other making
    died.status_written.reset();
    const Plan rest = died.Look();
    for (const Action& action : rest.actions) died.Apply(action);
    EXPECT_EQ(Json::diff(expected, Outcome(died)), Json::array())
        << "when the operator dies after " << count << " of "
        << ::testing::PrintToString(Lines(plan)) << " it goes on with "
        << ::testing::PrintToString(Lines(rest));
  }
}

Plan Scene::Step() {
  const Plan plan = Look();
  EXPECT_EQ(Lines(plan), Lines(Look())) << "decided differently when asked twice";
  ExpectPrefixesConverge(plan);
  for (const Action& action : plan.actions) Apply(action);
  ExpectLegalStatus();
  Scene again = *this;
  again.status_written.reset();  // or a pending write of counts would hide
  Plan more = again.Look();
  const Json* failure = again.Condition("ReplicaFailure");
  if (failure != nullptr && (*failure)["status"] == "True" &&
      Lines(more) == std::vector<std::string>{"status"}) {
    for (const Action& action : more.actions) again.Apply(action);
    EXPECT_EQ((*again.Condition("ReplicaFailure"))["status"], "False");
    more = again.Look();
  }
  if (!more.Empty()) {
    ADD_FAILURE() << "after " << ::testing::PrintToString(Lines(plan)) << " still wants "
                  << ::testing::PrintToString(Lines(more)) << " because: " << more.why
                  << (std::holds_alternative<WriteStatus>(more.actions[0])
                          ? "\n" + std::get<WriteStatus>(more.actions[0]).patch
                          : "");
  }
  return plan;
}

void Scene::Settle() {
  for (int i = 0; i < 20; ++i) {
    status_written.reset();
    const bool empty = Step().Empty();
    const std::vector<std::string> before = Children();
    RemoveTerminating();
    if (empty && Children() == before) return;
  }
  ADD_FAILURE() << "does not come to rest";
}

void Scene::RestartOperator() {
  departed_.clear();
  create_errors.clear();
  nodes.clear();
  status_written.reset();
}

void Scene::RemoveTerminating() {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods) {
    if (Terminating(pod)) names.push_back(name);
  }
  for (const std::string& name : names) Remove(name);
  std::erase_if(services, [](const auto& item) { return Terminating(item.second); });
  if (pod_group && Terminating(*pod_group)) pod_group.reset();
  if (autoscaler && Terminating(*autoscaler)) autoscaler.reset();
}

bool Scene::Wanted(const std::string& pod) const {
  const auto replica = ParsePodName("mnist", pod);
  if (!replica) return false;
  const Json& specs = job["spec"]["pytorchReplicaSpecs"];
  const std::string type(Name(replica->type));
  return specs.contains(type) && replica->index < specs[type].value("replicas", 1);
}

void Scene::Remove(const std::string& pod) {
  auto node = pods.extract(pod);
  ASSERT_FALSE(node.empty()) << pod;
  if (Wanted(pod)) departed_[pod] = {std::move(node.mapped()), now};
}

const Json* Scene::Condition(const std::string& type) const {
  if (!status().contains("conditions")) return nullptr;
  for (const Json& condition : status()["conditions"]) {
    if (condition["type"] == type) return &condition;
  }
  return nullptr;
}

std::vector<std::string> Scene::NewEvents() {
  std::vector<Event> fresh(events.begin() + static_cast<std::ptrdiff_t>(events_read_),
                           events.end());
  events_read_ = events.size();
  return Lines(fresh);
}

std::vector<std::string> Scene::Children() const {
  std::vector<std::string> lines;
  auto add = [&](const char* kind, const std::string& name, const Json& object) {
    lines.push_back(std::string(kind) + " " + name + (Terminating(object) ? " (terminating)" : ""));
  };
  for (const auto& [name, pod] : pods) add("Pod", name, pod);
  for (const auto& [name, service] : services) add("Service", name, service);
  if (pod_group) add("PodGroup", (*pod_group)["metadata"]["name"], *pod_group);
  if (autoscaler) add("HorizontalPodAutoscaler", (*autoscaler)["metadata"]["name"], *autoscaler);
  return lines;
}

}  // namespace core::test
