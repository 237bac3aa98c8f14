#pragma once

#include <string>

#include "base/result.h"
#include "core/plan.h"

namespace runtime {

// What the answer to GET of a node says: 404 is kGone, condition Ready other than True is
// kNotReady, the taint node.kubernetes.io/out-of-service is kOutOfService. Any other error is
// handed on.
base::Result<core::NodeState> ReadNode(const base::Result<std::string>& reply);

}  // namespace runtime
