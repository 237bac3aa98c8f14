#include "ddp/distributed_sampler.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>

namespace ddp {

int64_t DistributedSampler::SamplesPerRank() const {
  if (drop_last && size % world_size != 0) {
    return std::max<int64_t>(0, (size - world_size + world_size - 1) / world_size);
  }
  return (size + world_size - 1) / world_size;
}

int64_t DistributedSampler::OwnSamples() const {
  // Positions rank, rank + world_size, ... of which those below `size` are no padding.
  const int64_t own = rank < size ? (size - rank + world_size - 1) / world_size : 0;
  return std::min(own, SamplesPerRank());
}

at::Tensor DistributedSampler::Indices() const {
  const auto options = at::TensorOptions().dtype(at::kLong);
  at::Tensor order;
  if (shuffle) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed + epoch);
    order = at::randperm(size, generator, options);
  } else {
    order = at::arange(size, options);
  }
  const int64_t total = SamplesPerRank() * world_size;
  if (total > size && size > 0) {
    const int64_t times = (total + size - 1) / size;
    order = order.repeat({times});
  }
  return order.slice(0, rank, total, world_size).contiguous();
}

}  // namespace ddp
