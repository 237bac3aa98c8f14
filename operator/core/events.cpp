#include <map>

#include "core/plan.h"

namespace core {

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kJob:
      return "PyTorchJob";
    case Kind::kPod:
      return "Pod";
    case Kind::kService:
      return "Service";
    case Kind::kPodGroup:
      return "PodGroup";
    case Kind::kAutoscaler:
      return "HorizontalPodAutoscaler";
  }
  return "";
}

namespace {

constexpr size_t kMostSingleEvents = 10;

// "pod" in "Created pod: x", as training-operator writes it.
std::string Word(Kind kind) {
  switch (kind) {
    case Kind::kJob:
      return "job";
    case Kind::kPod:
      return "pod";
    case Kind::kService:
      return "service";
    case Kind::kPodGroup:
    case Kind::kAutoscaler:
      return std::string(Name(kind));
  }
  return "";
}

}  // namespace

std::vector<Event> ChildEvents(const std::vector<Done>& done) {
  std::map<std::pair<bool, Kind>, std::vector<const Done*>> groups;
  for (const Done& item : done) groups[{!item.created, item.kind}].push_back(&item);
  std::vector<Event> events;
  for (const auto& [group, items] : groups) {
    const auto [deleted, kind] = group;
    const std::string verb = deleted ? "Deleted " : "Created ";
    // Kind::kJob has always used the pods' reason: SuccessfulDeletePod "Deleted job: x".
    const std::string reason = std::string(deleted ? "SuccessfulDelete" : "SuccessfulCreate") +
                               std::string(Name(kind == Kind::kJob ? Kind::kPod : kind));
    if (items.size() > kMostSingleEvents) {
      events.push_back({false, reason,
                        verb + std::to_string(items.size()) + " " + Word(kind) +
                            "s: " + items.front()->name + " … " + items.back()->name});
      continue;
    }
    for (const Done* item : items) {
      events.push_back({false, reason, verb + Word(kind) + ": " + item->name});
    }
  }
  return events;
}

}  // namespace core
