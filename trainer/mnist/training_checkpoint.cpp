// How a Training starts from files and leaves checkpoints.
#include <algorithm>
#include <map>

#include "mnist/training.h"

namespace mnist {
namespace {

using ddp::Error;
using ddp::ErrorKind;

constexpr const char* kModelPrefix = "model.";
constexpr const char* kOptimizerPrefix = "optimizer.";
constexpr const char* kPosition = "position";  // epoch, batch, world size, batch size
constexpr const char* kRandom = "random_states";
constexpr const char* kLastTest = "last_test";  // correct, total, mean loss

const torch::Tensor* Find(const ddp::NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

std::string SizesText(torch::IntArrayRef sizes) {
  std::string out;
  for (int64_t size : sizes) out += (out.empty() ? "" : "x") + std::to_string(size);
  return out;
}

}  // namespace

ddp::Result<void> Training::SetParameters(const ddp::NamedTensors& tensors,
                                          const std::string& prefix, const std::string& source) {
  torch::NoGradGuard no_grad;
  for (const auto& entry : net_->named_parameters()) {
    const auto* found = Find(tensors, prefix + entry.key());
    if (found == nullptr) {
      return Error{ErrorKind::kFailed,
                   source + " has no " + entry.key() + ": is it of another --net?"};
    }
    if (found->sizes() != entry.value().sizes()) {
      return Error{ErrorKind::kFailed, source + " holds " + entry.key() + " as " +
                                           SizesText(found->sizes()) + ", this net has " +
                                           SizesText(entry.value().sizes()) +
                                           ": is it of another --net?"};
    }
    entry.value().copy_(*found);  // into place: the parameter is a view of the flat buffer
  }
  return {};
}

ddp::Result<void> Training::Start() {
  const bool master = context_.communicator.rank() == 0;
  if (!options_.init_from.empty()) {
    ddp::NamedTensors tensors;
    if (master) {
      auto loaded = ddp::LoadStateDict(options_.init_from);
      if (!loaded) return loaded.error();
      tensors = std::move(*loaded);
    }
    auto everywhere = ddp::BroadcastTensors(context_.communicator, tensors);
    if (!everywhere) return everywhere.error();
    auto set = SetParameters(*everywhere, "", options_.init_from.string());
    if (!set) return set;
  }

  ddp::NamedTensors checkpoint;
  if (master) {
    if (!options_.checkpoint_dir.empty()) {
      auto directory = ddp::CheckpointDirectory::Open(options_.checkpoint_dir);
      if (!directory) return directory.error();
      checkpoints_ = std::move(*directory);
    }
    std::filesystem::path path;
    if (options_.resume == "auto") {
      if (checkpoints_) path = checkpoints_->Newest(context_.log).value_or("");
    } else if (options_.resume != "never") {
      path = options_.resume;
    }
    if (!path.empty()) {
      auto read = ddp::ReadCheckpoint(path);
      if (!read) return read.error();
      checkpoint = std::move(*read);
      context_.log("resuming from " + path.string());
    }
  }
  auto everywhere = ddp::BroadcastTensors(context_.communicator, checkpoint);
  if (!everywhere) return everywhere.error();
  return everywhere->empty() ? ddp::Result<void>() : Restore(*everywhere);
}

ddp::Result<void> Training::SaveCheckpoint() {
  if (options_.checkpoint_dir.empty()) return {};
  auto random = ddp::GatherRows(context_.communicator, ddp::CpuRandomState());
  if (!random) return random.error();
  if (!checkpoints_) return {};
  ddp::NamedTensors out;
  for (auto& [name, tensor] : Model()) out.emplace_back(kModelPrefix + name, tensor);
  for (auto& [name, tensor] : optimizer_->State())
    out.emplace_back(kOptimizerPrefix + name, tensor);
  const int64_t position[] = {position_.epoch, position_.batch, context_.communicator.world_size(),
                              options_.batch_size};
  out.emplace_back(kPosition, torch::tensor(torch::ArrayRef<int64_t>(position, 4)));
  out.emplace_back(kRandom, *random);
  out.emplace_back(kLastTest,
                   torch::tensor({static_cast<double>(result_.test.correct),
                                  static_cast<double>(result_.test.total), result_.test.loss},
                                 torch::kDouble));
  const int64_t step = (position_.epoch - 1) * BatchesPerEpoch() + position_.batch;
  return checkpoints_->Write(step, out);
}

ddp::Result<void> Training::Restore(const ddp::NamedTensors& checkpoint) {
  auto set = SetParameters(checkpoint, kModelPrefix, "the checkpoint");
  if (!set) return set;
  ddp::NamedTensors state;
  for (const auto& [name, tensor] : checkpoint) {
    if (name.starts_with(kOptimizerPrefix)) {
      state.emplace_back(name.substr(std::string(kOptimizerPrefix).size()), tensor);
    }
  }
  {
    torch::NoGradGuard no_grad;
    if (auto restored = optimizer_->Restore(state); !restored) return restored;
  }
  const auto* position = Find(checkpoint, kPosition);
  const auto* random = Find(checkpoint, kRandom);
  const auto* test = Find(checkpoint, kLastTest);
  if (position == nullptr || position->numel() != 4 || random == nullptr || random->dim() != 2 ||
      test == nullptr || test->numel() != 3) {
    return Error{ErrorKind::kDamaged, "the checkpoint was written by another program"};
  }
  const auto* numbers = position->data_ptr<int64_t>();
  position_ = {numbers[0], numbers[1]};
  const int64_t old_world = numbers[2], old_batch = numbers[3];
  const auto& communicator = context_.communicator;
  if (old_world != communicator.world_size() || old_batch != options_.batch_size) {
    // The same share of the epoch is done; which samples those were differs from here on.
    position_.batch =
        position_.batch * old_world * old_batch / (options_.batch_size * communicator.world_size());
    if (communicator.rank() == 0) {
      context_.log("warning: the checkpoint is of " + std::to_string(old_world) +
                   " ranks with batches of " + std::to_string(old_batch) +
                   ": continuing at the same share of the epoch, not " + "bit for bit");
    }
  }
  const auto row = std::min<int64_t>(communicator.rank(), random->size(0) - 1);
  ddp::SetCpuRandomState((*random)[row]);
  result_.test = {static_cast<int64_t>((*test)[0].item<double>()),
                  static_cast<int64_t>((*test)[1].item<double>()), (*test)[2].item<double>()};
  return {};
}

}  // namespace mnist
