#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "ddp/communicator.h"
#include "ddp/result.h"
#include "ddp/state_dict.h"

namespace ddp {

// A directory of checkpoints, "checkpoint-<step>.pt", each a state_dict file with a checksum that
// Python can read too. A file appears whole or not at all; the newest `keep` stay. Only rank 0 uses
// it: the other ranks need not see the directory.
class CheckpointDirectory {
 public:
  // Makes the directory, checks that it can be written, and clears away what killed processes left.
  static Result<CheckpointDirectory> Open(const std::filesystem::path& path, int keep = 2);

  Result<void> Write(int64_t step, const NamedTensors& tensors) const;

  // The newest file that is intact; nullopt if there is none. `warn` is told of each one skipped.
  std::optional<std::filesystem::path> Newest(
      const std::function<void(const std::string&)>& warn) const;

 private:
  CheckpointDirectory(std::filesystem::path path, int keep) : path_(std::move(path)), keep_(keep) {}
  std::filesystem::path path_;
  int keep_;
};

// Reads a checkpoint and verifies its checksum.
Result<NamedTensors> ReadCheckpoint(const std::filesystem::path& path);

// Rank 0's tensors, on every rank. The others' `tensors` are ignored.
Result<NamedTensors> BroadcastTensors(Communicator& communicator, const NamedTensors& tensors);

// One row for each rank: [world_size, row.numel()], on every rank. `row` is a 1-D byte tensor of
// equal size on all ranks; for state that differs between ranks, such as random generators.
Result<at::Tensor> GatherRows(Communicator& communicator, const at::Tensor& row);

// State of the default random generator of the CPU, as bytes.
at::Tensor CpuRandomState();
void SetCpuRandomState(const at::Tensor& state);

// Whether a file of about `bytes` could be written at `path` now: the directory is there and
// writable, and its disk has room. Leaves nothing behind.
Result<void> CheckWritable(const std::filesystem::path& path, uint64_t bytes);

}  // namespace ddp
