#include "mnist/resident_data.h"

#include <ATen/Parallel.h>

namespace mnist {

ResidentData::ResidentData(const Split& split, bool normalize, torch::Device device)
    : device_(device) {
  auto* images = const_cast<uint8_t*>(split.images.data());  // from_blob takes no const; cloned
  auto* labels = const_cast<uint8_t*>(split.labels.data());
  images_ = torch::from_blob(images, {split.size, kImageSide, kImageSide}, torch::kUInt8)
                .clone()
                .to(device);
  labels_ = torch::from_blob(labels, {split.size}, torch::kUInt8).to(torch::kLong).to(device);
  values_ = torch::arange(256, torch::kFloat).div_(255);
  if (normalize) values_.sub_(0.1307).div_(0.3081);
  values_ = values_.to(device);
}

Batch ResidentData::Gather(const torch::Tensor& indices) const {
  const int64_t n = indices.size(0);
  if (!device_.is_cpu()) {
    const auto on_device = indices.to(device_);
    auto bytes = images_.index_select(0, on_device).to(torch::kLong);
    return {values_.index_select(0, bytes.view({-1})).view({n, 1, kImageSide, kImageSide}),
            labels_.index_select(0, on_device)};
  }
  auto images = torch::empty({n, 1, kImageSide, kImageSide});
  const auto* from = images_.data_ptr<uint8_t>();
  const auto* values = values_.data_ptr<float>();
  const auto* index = indices.data_ptr<int64_t>();
  auto* to = images.data_ptr<float>();
  at::parallel_for(0, n, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* image = from + index[i] * kImageBytes;
      for (int64_t k = 0; k < kImageBytes; ++k) to[i * kImageBytes + k] = values[image[k]];
    }
  });
  return {images, labels_.index_select(0, indices)};
}

}  // namespace mnist
