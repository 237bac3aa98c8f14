#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ddp {

// The share of a data set that one rank trains on in one epoch: the same indices, in the same
// order, as Python's torch.utils.data.DistributedSampler gives.
struct DistributedSampler {
  int64_t size = 0;  // of the data set
  int world_size = 1;
  int rank = 0;
  bool shuffle = true;
  uint64_t seed = 0;
  uint64_t epoch = 0;      // another permutation each epoch, if the caller counts it up
  bool drop_last = false;  // true: the tail that does not divide is left out; else it is padded

  int64_t SamplesPerRank() const;
  at::Tensor Indices() const;  // int64, on the CPU

  // How many of this rank's indices are its own: the rest, at the end, repeat the first samples so
  // that every rank has equally many. Leave them out when a sum over the data set is wanted.
  int64_t OwnSamples() const;
};

}  // namespace ddp
