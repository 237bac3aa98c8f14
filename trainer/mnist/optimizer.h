#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "ddp/result.h"
#include "ddp/state_dict.h"

namespace mnist {

struct NamedParameters {
  std::vector<std::string> names;
  std::vector<torch::Tensor> tensors;
  // Both undefined, or one buffer each of which `tensors` and their gradients are views in order.
  torch::Tensor flat;
  torch::Tensor flat_gradients;
};

// Takes the gradients of its parameters and changes them in place.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void Step(double lr) = 0;
  // Back to the state before the first step.
  virtual void Reset() = 0;
  // What a checkpoint holds, as "<name of state>.<name of parameter>".
  virtual ddp::NamedTensors State() const = 0;
  virtual ddp::Result<void> Restore(const ddp::NamedTensors& state) = 0;
};

// torch.optim.Adadelta with rho 0.9 and eps 1e-6: LibTorch has none. With a flat buffer, on the
// CPU, one fused pass over it; else the same operations in the same order as Python's.
std::unique_ptr<Optimizer> MakeAdadelta(const NamedParameters& parameters);

// torch.optim.SGD with momentum, no dampening.
std::unique_ptr<Optimizer> MakeSgd(const NamedParameters& parameters, double momentum);

}  // namespace mnist
