#pragma once

#include <string>
#include <string_view>

#include "ddp/result.h"
#include "ddp/state_dict.h"

namespace ddp {

// A state_dict file's content, in memory.
Result<std::string> PackStateDict(const NamedTensors& tensors);

// `name` is for the errors.
Result<NamedTensors> UnpackStateDict(std::string_view bytes, const std::string& name);

}  // namespace ddp
