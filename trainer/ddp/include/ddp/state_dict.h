#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ddp/result.h"

namespace ddp {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Writes a file that Python reads as an OrderedDict with torch.load(path, weights_only=True), and
// that load_state_dict takes. The file appears whole or not at all: it is written under a temporary
// name in the same directory, flushed to the disk and renamed.
Result<void> SaveStateDict(const NamedTensors& tensors, const std::filesystem::path& path);

// Reads a file of SaveStateDict or of Python's torch.save(model.state_dict(), path). Tensors come
// back on the CPU. A "module." prefix, which Python's DistributedDataParallel adds, is removed when
// every name has it.
Result<NamedTensors> LoadStateDict(const std::filesystem::path& path);

}  // namespace ddp
