#include "runtime/nodes.h"

#include "core/json.h"

namespace runtime {

base::Result<core::NodeState> ReadNode(const base::Result<std::string>& reply) {
  if (!reply) {
    if (reply.error().code == base::ErrorCode::kNotFound) return core::NodeState::kGone;
    return reply.error();
  }
  const core::Json node = core::Json::parse(*reply, nullptr, false);
  if (!node.is_object()) {
    return base::Error{base::ErrorCode::kInternal, "the reply to GET of a node is no object", {}};
  }
  for (const core::Json& taint : core::Get(core::Get(node, "spec"), "taints")) {
    if (core::GetString(taint, "key") == "node.kubernetes.io/out-of-service") {
      return core::NodeState::kOutOfService;
    }
  }
  for (const core::Json& condition : core::Get(core::Get(node, "status"), "conditions")) {
    if (core::GetString(condition, "type") == "Ready") {
      return core::GetString(condition, "status") == "True" ? core::NodeState::kHealthy
                                                            : core::NodeState::kNotReady;
    }
  }
  return core::NodeState::kNotReady;
}

}  // namespace runtime
