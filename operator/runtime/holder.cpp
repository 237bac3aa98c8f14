#include "runtime/holder.h"

namespace runtime {
namespace {

template <class T>
std::optional<HolderView> View(core::Kind kind, const base::Result<T>& object) {
  if (!object) return std::nullopt;
  return HolderView{object->owner_uid, DescribeHolder(kind, *object)};
}

}  // namespace

std::optional<HolderView> ReadHolder(core::Kind kind, const std::string& json) {
  switch (kind) {
    case core::Kind::kPod:
      return View(kind, core::DecodePod(json));
    case core::Kind::kService:
      return View(kind, core::DecodeService(json));
    case core::Kind::kPodGroup:
      return View(kind, core::DecodePodGroup(json));
    case core::Kind::kAutoscaler:
      return View(kind, core::DecodeAutoscaler(json));
    case core::Kind::kJob:
      break;
  }
  return std::nullopt;
}

}  // namespace runtime
