#pragma once

#include <torch/torch.h>

#include <memory>

#include "ddp/result.h"

namespace mnist {

enum class NetName { kConv3x3, kConv5x5 };

// A classifier of 28x28 images: [N, 1, 28, 28] -> log probabilities [N, 10]. Parameters are named
// conv1, conv2, fc1, fc2 with .weight and .bias.
class Net : public torch::nn::Module {
 public:
  virtual torch::Tensor Forward(torch::Tensor images) = 0;
};

// The order in which the layers are made, and so their initial weights for a given seed, is that of
// the well-known Python examples.
std::shared_ptr<Net> MakeNet(NetName name);

}  // namespace mnist
