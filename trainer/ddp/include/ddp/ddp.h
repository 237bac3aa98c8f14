#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ddp/communicator.h"
#include "ddp/result.h"

namespace ddp {

struct DdpOptions {
  enum class Mode {
    // One buffer for all gradients, reduced in one call after backward. The least work: best where
    // every core computes.
    kFlat,
    // c10d::Reducer: buckets are reduced while backward still runs. Best with a slow network and
    // cores to spare.
    kReducer,
  };
  Mode mode = Mode::kFlat;
  int64_t first_bucket_bytes = 1 << 20;
  int64_t bucket_bytes = 25 << 20;
  // Rank 0's buffers (running means and the like) replace the others' before each forward pass.
  bool broadcast_buffers = true;
};

// What a step decided together.
struct StepOutcome {
  bool stop = false;  // some rank asked to stop: every rank learns it in the same step
  bool buckets_rebuilt = false;
};

// DistributedDataParallel: averages the gradients of equal models over the ranks.
//
//   auto ddp = ddp::Ddp::Create(net->parameters(), net->buffers(), communicator, {});
//   for each batch:
//     ddp->BeforeForward();
//     auto loss = ...;
//     ddp->Backward(loss, stop_requested);
//     optimizer.step();
//
// Between Backward and the next BeforeForward each parameter's grad() is the mean over the ranks.
// Use it by one thread. The communicator must outlive it.
class Ddp {
 public:
  virtual ~Ddp() = default;

  // Checks that shapes and types are equal on all ranks and copies rank 0's values to the others.
  // Parameters must be floating point, dense, and all on one device.
  static Result<std::unique_ptr<Ddp>> Create(std::vector<at::Tensor> parameters,
                                             std::vector<at::Tensor> buffers,
                                             Communicator& communicator, const DdpOptions& options);

  // Clears the gradients and readies the buffers.
  virtual Result<void> BeforeForward() = 0;

  // Runs backward on a scalar loss and averages the gradients. `stop` is this rank's wish to stop,
  // which travels with the gradients at no extra message.
  virtual Result<StepOutcome> Backward(const at::Tensor& loss, bool stop) = 0;

  // All parameters, and all gradients, as one buffer each of which the tensors are views, for fused
  // optimizers: undefined unless Mode::kFlat. The order is that of `parameters`.
  virtual at::Tensor flat_parameters() const = 0;
  virtual at::Tensor flat_gradients() const = 0;
};

}  // namespace ddp
