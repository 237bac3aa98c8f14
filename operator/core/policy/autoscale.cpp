#include "core/policy/autoscale.h"

#include <algorithm>

#include "core/covers.h"
#include "core/json.h"
#include "core/names.h"

namespace core {

void WantAutoscaler(Draft* draft) {
  const auto& elastic = draft->job.spec.elastic;
  if (!elastic || elastic->metrics_json.empty()) {
    DropAutoscaler(draft);
    return;
  }
  const Json wanted = {{"scaleTargetRef",
                        {{"apiVersion", kApiVersion}, {"kind", kJobKind}, {"name", draft->name()}}},
                       {"minReplicas", std::max(1, elastic->min_replicas.value_or(1))},
                       {"maxReplicas", elastic->max_replicas.value_or(1)},
                       {"metrics", Json::parse(elastic->metrics_json, nullptr, false)}};
  const auto& autoscaler = draft->snapshot.autoscaler;
  if (!autoscaler) {
    draft->CreateOwned(Kind::kAutoscaler, "autoscaling/v2", wanted);
  } else if (!autoscaler->deleting &&
             !Covers(Json::parse(autoscaler->spec_json, nullptr, false), wanted)) {
    draft->PatchOwned(Kind::kAutoscaler, autoscaler->name, Dump({{"spec", wanted}}));
  }
}

void DropAutoscaler(Draft* draft) {
  const auto& autoscaler = draft->snapshot.autoscaler;
  if (autoscaler && !autoscaler->deleting) {
    draft->DeleteOwned(Kind::kAutoscaler, autoscaler->name, autoscaler->uid);
  }
}

}  // namespace core
