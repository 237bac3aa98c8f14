#pragma once

#include <optional>
#include <string>

#include "core/plan.h"

namespace runtime {

// An object under a name that a job needs, as messages describe it.
struct HolderView {
  std::string owner_uid;  // of its controller, "" = none
  std::string description;
};

// "Pod demo/mnist-master-0, controlled by PyTorchJob mnist (uid …)".
template <class T>
std::string DescribeHolder(core::Kind kind, const T& object) {
  std::string text = std::string(core::Name(kind)) + " " + object.ns + "/" + object.name;
  if (object.owner_uid.empty()) return text + ", which has no controller";
  return text + ", controlled by " + object.owner_kind + " " + object.owner_name + " (uid " +
         object.owner_uid + ")";
}

// From the object's JSON; none when it can't be read.
std::optional<HolderView> ReadHolder(core::Kind kind, const std::string& json);

}  // namespace runtime
