#pragma once

#include "core/json.h"

namespace core {

// Whether `actual` says everything that `wanted` says; what the API server added does not matter,
// and equal quantities in other words ("0.5", "500m") are equal.
bool Covers(const Json& actual, const Json& wanted);

}  // namespace core
