#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "ddp/result.h"

namespace ddp {

enum class ReduceOp { kSum, kMin, kMax };

// The ranks of one job, which call each function in the same order. Every call blocks until all
// ranks have made it or the timeout given to Rendezvous has passed; a failed call names the rank
// that was lost where that is known (kPeerLost), and the communicator is unusable afterwards.
// Use by one thread at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual std::string backend() const = 0;  // "gloo", "nccl", or "none" for a process that is alone

  // In place. The tensor is contiguous, of equal type and size on every rank.
  virtual Result<void> AllReduce(at::Tensor tensor, ReduceOp op) = 0;
  virtual Result<void> Broadcast(at::Tensor tensor, int root) = 0;
  virtual Result<void> Barrier() = 0;

  // The texts of all ranks, by rank. For small things: they travel through the store.
  virtual Result<std::vector<std::string>> AllGatherText(const std::string& text) = 0;

  // Call it before the process leaves. Returns when every rank has called it, on rank 0 last, since
  // the others still need the store that it hosts.
  virtual Result<void> Finish() = 0;
};

// Facts that must be equal on every rank (options, sizes of the data, shapes), by name. Fails with
// kDisagree and names each fact that differs, with both values.
Result<void> CheckAgreement(Communicator& communicator,
                            const std::map<std::string, std::string>& facts);

}  // namespace ddp
