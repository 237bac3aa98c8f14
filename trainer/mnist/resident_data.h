#pragma once

#include <torch/torch.h>

#include "mnist/dataset.h"

namespace mnist {

struct Batch {
  torch::Tensor images;  // float [N, 1, 28, 28], normalized
  torch::Tensor labels;  // int64 [N]
};

// A split kept whole on the device as bytes; a batch is one gather. The floats are those that
// Python's ToTensor and Normalize compute, to the last bit, read from a table of the 256 possible
// values.
class ResidentData {
 public:
  ResidentData(const Split& split, bool normalize, torch::Device device);

  int64_t size() const { return labels_.size(0); }
  // `indices`: int64, on the CPU.
  Batch Gather(const torch::Tensor& indices) const;

 private:
  torch::Device device_;
  torch::Tensor images_;  // uint8 [size, 28, 28]
  torch::Tensor labels_;  // int64 [size]
  torch::Tensor values_;  // float [256]: what each byte stands for
};

}  // namespace mnist
