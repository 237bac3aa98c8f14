#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace runtime {

// resourceVersions of one cluster are decimal numbers that grow with every write
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions). 0 = none, or
// one that is not understood.
inline uint64_t Revision(std::string_view resource_version) {
  uint64_t value = 0;
  const char* end = resource_version.data() + resource_version.size();
  auto [parsed, error] = std::from_chars(resource_version.data(), end, value);
  return error == std::errc{} && parsed == end ? value : 0;
}

template <class T>
struct Change {
  std::shared_ptr<const T> before;  // either may be null
  std::shared_ptr<const T> after;
};

// The objects of one kind as a watch last told them, with an index by owner. `T` has ns, name, uid,
// resource_version and owner_uid. No lock of its own.
template <class T>
class Store {
 public:
  using Ptr = std::shared_ptr<const T>;
  using Name = std::pair<std::string, std::string>;  // namespace, name

  Ptr Find(const std::string& ns, const std::string& name) const {
    auto it = objects_.find({ns, name});
    return it == objects_.end() ? nullptr : it->second;
  }

  std::vector<Ptr> OwnedBy(const std::string& uid) const {
    std::vector<Ptr> owned;
    auto it = owned_.find(uid);
    if (it == owned_.end()) return owned;
    owned.reserve(it->second.size());
    for (const Name& name : it->second) owned.push_back(objects_.at(name));
    return owned;
  }

  std::vector<Ptr> WithPrefix(const std::string& ns, const std::string& prefix) const {
    std::vector<Ptr> found;
    for (auto it = objects_.lower_bound({ns, prefix});
         it != objects_.end() && it->first.first == ns && it->first.second.starts_with(prefix);
         ++it) {
      found.push_back(it->second);
    }
    return found;
  }

  Change<T> Put(T object) {
    const Name name{object.ns, object.name};
    Ptr& place = objects_[name];
    Ptr before = std::move(place);
    if (before) Disown(name, before->owner_uid);
    if (!object.owner_uid.empty()) owned_[object.owner_uid].insert(name);
    place = std::make_shared<const T>(std::move(object));
    return {std::move(before), place};
  }

  Ptr Erase(const std::string& ns, const std::string& name) {
    auto it = objects_.find({ns, name});
    if (it == objects_.end()) return nullptr;
    Ptr before = std::move(it->second);
    Disown(it->first, before->owner_uid);
    objects_.erase(it);
    return before;
  }

  // Makes `objects` all there is in `scope` (a namespace, "" = all) and returns what differs.
  std::vector<Change<T>> Replace(const std::string& scope, std::vector<T> objects) {
    std::vector<Change<T>> changes;
    std::set<Name> gone;
    for (const auto& [name, object] : objects_) {
      if (scope.empty() || name.first == scope) gone.insert(name);
    }
    for (T& object : objects) {
      const Name name{object.ns, object.name};
      gone.erase(name);
      Change<T> change = Put(std::move(object));
      if (change.before && change.before->uid == change.after->uid &&
          change.before->resource_version == change.after->resource_version) {
        continue;
      }
      changes.push_back(std::move(change));
    }
    for (const Name& name : gone) changes.push_back({Erase(name.first, name.second), nullptr});
    return changes;
  }

  std::size_t size() const { return objects_.size(); }

 private:
  void Disown(const Name& name, const std::string& owner_uid) {
    auto it = owned_.find(owner_uid);
    if (it == owned_.end()) return;
    it->second.erase(name);
    if (it->second.empty()) owned_.erase(it);
  }

  std::map<Name, Ptr> objects_;
  std::unordered_map<std::string, std::set<Name>> owned_;
};

// How far the watches of one kind have come, by scope ("" = all namespaces).
class Progress {
 public:
  // A list says where the stream starts anew, which may lie before (an older API server answered).
  void Restart(const std::string& scope, std::string_view resource_version) {
    seen_[scope] = Revision(resource_version);
  }
  void Advance(const std::string& scope, std::string_view resource_version) {
    uint64_t& seen = seen_[scope];
    seen = std::max(seen, Revision(resource_version));
  }
  uint64_t Of(const std::string& ns) const {
    auto it = seen_.find("");
    if (it == seen_.end()) it = seen_.find(ns);
    return it == seen_.end() ? 0 : it->second;
  }

 private:
  std::map<std::string, uint64_t> seen_;
};

}  // namespace runtime
