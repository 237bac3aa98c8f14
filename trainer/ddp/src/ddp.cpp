#include "ddp/ddp.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <sstream>

#include "backend.h"

namespace ddp {
namespace {

std::string Describe(const std::vector<at::Tensor>& tensors) {
  std::ostringstream out;
  for (const auto& tensor : tensors) out << tensor.scalar_type() << tensor.sizes() << " ";
  return out.str();
}

// Tensors of one type, to be sent as one message.
struct Coalesced {
  at::Tensor flat;
  std::vector<at::Tensor> tensors;

  void Pack() {
    std::vector<at::Tensor> rows;
    for (const auto& tensor : tensors) rows.push_back(tensor.detach().reshape({-1}));
    flat = at::cat(rows);
  }
  void Unpack() {
    int64_t offset = 0;
    for (auto& tensor : tensors) {
      tensor.detach().copy_(flat.slice(0, offset, offset + tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  }
};

std::vector<Coalesced> GroupByType(const std::vector<at::Tensor>& tensors) {
  std::vector<Coalesced> groups;
  for (const auto& tensor : tensors) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Coalesced& g) {
      return g.tensors[0].scalar_type() == tensor.scalar_type();
    });
    if (group == groups.end()) group = groups.insert(groups.end(), Coalesced{});
    group->tensors.push_back(tensor);
  }
  return groups;
}

Result<void> BroadcastFromMaster(Communicator& communicator,
                                 const std::vector<at::Tensor>& tensors) {
  at::NoGradGuard no_grad;
  for (auto& group : GroupByType(tensors)) {
    group.Pack();
    if (auto sent = communicator.Broadcast(group.flat, 0); !sent) return sent;
    if (communicator.rank() != 0) group.Unpack();
  }
  return {};
}

// What both modes share.
class DdpBase : public Ddp {
 public:
  DdpBase(std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers,
          Communicator& communicator, const DdpOptions& options)
      : parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        communicator_(communicator),
        options_(options) {}

  Result<void> SyncBuffers() {
    if (!options_.broadcast_buffers || buffers_.empty() || communicator_.world_size() == 1) {
      return {};
    }
    return BroadcastFromMaster(communicator_, buffers_);
  }

 protected:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  Communicator& communicator_;
  DdpOptions options_;
};

class FlatDdp final : public DdpBase {
 public:
  using DdpBase::DdpBase;

  // Moves the parameters into one buffer, each with the strides that it had.
  void Flatten() {
    at::NoGradGuard no_grad;
    int64_t size = 0;
    for (const auto& p : parameters_) size += p.numel();
    const auto options = parameters_[0].options().requires_grad(false);
    weights_ = at::empty({size}, options);
    reduced_ = at::zeros({size + 1}, options);  // and the word that says stop
    gradients_ = reduced_.slice(0, 0, size);
    int64_t offset = 0;
    for (auto& p : parameters_) {
      auto view = weights_.as_strided(p.sizes(), p.strides(), offset);
      view.copy_(p.detach());
      p.set_data(view);
      gradient_views_.push_back(gradients_.as_strided(p.sizes(), p.strides(), offset));
      offset += p.numel();
    }
  }

  Result<void> BeforeForward() override {
    // Without a gradient to add to, backward hands its own tensors over: no zeroing, no addition.
    for (auto& p : parameters_) p.mutable_grad() = at::Tensor();
    return SyncBuffers();
  }

  Result<StepOutcome> Backward(const at::Tensor& loss, bool stop) override {
    loss.backward();
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> from, to;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      auto& grad = parameters_[i].mutable_grad();
      if (grad.defined()) {
        from.push_back(grad);
        to.push_back(gradient_views_[i]);
      } else {
        gradient_views_[i].zero_();  // took no part in this loss
      }
    }
    at::_foreach_copy_(to, from);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = gradient_views_[i];
    }
    const int world_size = communicator_.world_size();
    if (world_size == 1) return StepOutcome{stop, false};
    gradients_.mul_(1.0 / world_size);
    auto word = reduced_.slice(0, gradients_.numel());
    word.fill_(stop ? 1.0 : 0.0);
    if (auto sum = communicator_.AllReduce(reduced_, ReduceOp::kSum); !sum) return sum.error();
    return StepOutcome{word.item<double>() > 0, false};
  }

  at::Tensor flat_parameters() const override { return weights_; }
  at::Tensor flat_gradients() const override { return gradients_; }

 private:
  at::Tensor weights_, gradients_, reduced_;
  std::vector<at::Tensor> gradient_views_;
};

class ReducerDdp final : public DdpBase {
 public:
  using DdpBase::DdpBase;

  Result<void> MakeReducer() {
    // The wish to stop is the gradient of one more parameter, which never changes the loss.
    stop_word_ = at::zeros({1}, parameters_[0].options().requires_grad(false));
    stop_word_.requires_grad_(true);
    auto all = parameters_;
    all.push_back(stop_word_);
    auto reducer =
        MakeBucketReducer(communicator_, all, options_.first_bucket_bytes, options_.bucket_bytes);
    if (!reducer) return reducer.error();
    reducer_ = std::move(*reducer);
    return {};
  }

  Result<void> BeforeForward() override {
    at::NoGradGuard no_grad;
    // Gradients are views of the buckets: zero them, never drop them.
    for (auto& p : parameters_) {
      if (p.mutable_grad().defined()) p.mutable_grad().zero_();
    }
    if (stop_word_.mutable_grad().defined()) stop_word_.mutable_grad().zero_();
    auto ready = GuardCollective(communicator_, [&] { rebuilt_ = reducer_->PrepareForward(); });
    if (!ready) return ready;
    return SyncBuffers();
  }

  Result<StepOutcome> Backward(const at::Tensor& loss, bool stop) override {
    auto done = GuardCollective(communicator_, [&] {
      reducer_->PrepareBackward();
      (loss + (stop_word_ * (stop ? 1.0 : 0.0)).sum()).backward();
    });
    if (!done) return done.error();
    return StepOutcome{stop_word_.grad().item<double>() > 0, std::exchange(rebuilt_, false)};
  }

  at::Tensor flat_parameters() const override { return {}; }
  at::Tensor flat_gradients() const override { return {}; }

 private:
  at::Tensor stop_word_;
  std::unique_ptr<BucketReducer> reducer_;
  bool rebuilt_ = false;
};

Result<void> CheckParameters(const std::vector<at::Tensor>& parameters, const DdpOptions& options) {
  if (parameters.empty()) return Error{ErrorKind::kInvalid, "the model has no parameters"};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = parameters[i];
    std::string problem;
    if (!at::isFloatingType(p.scalar_type())) problem = "is not floating point";
    if (p.device() != parameters[0].device()) problem = "is on another device than the first one";
    if (!p.is_non_overlapping_and_dense()) problem = "is not dense in memory";
    if (options.mode == DdpOptions::Mode::kFlat && p.scalar_type() != parameters[0].scalar_type()) {
      problem = "has another type than the first one (Mode::kReducer allows that)";
    }
    if (!p.requires_grad()) problem = "needs no gradient: leave it out";
    if (!problem.empty()) {
      return Error{ErrorKind::kInvalid, "parameter " + std::to_string(i) + " " + problem};
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Ddp>> Ddp::Create(std::vector<at::Tensor> parameters,
                                         std::vector<at::Tensor> buffers,
                                         Communicator& communicator, const DdpOptions& options) {
  if (auto good = CheckParameters(parameters, options); !good) return good.error();
  auto agreed = CheckAgreement(
      communicator, {{"parameters", Describe(parameters)}, {"buffers", Describe(buffers)}});
  if (!agreed) return agreed.error();
  auto all = parameters;
  all.insert(all.end(), buffers.begin(), buffers.end());
  if (communicator.world_size() > 1) {
    if (auto sent = BroadcastFromMaster(communicator, all); !sent) return sent.error();
  }
  // One process has nothing to reduce: buckets would only cost time.
  if (options.mode == DdpOptions::Mode::kReducer && communicator.world_size() > 1) {
    auto out = std::make_unique<ReducerDdp>(std::move(parameters), std::move(buffers), communicator,
                                            options);
    if (auto made = out->MakeReducer(); !made) return made.error();
    return std::unique_ptr<Ddp>(std::move(out));
  }
  auto out =
      std::make_unique<FlatDdp>(std::move(parameters), std::move(buffers), communicator, options);
  out->Flatten();
  return std::unique_ptr<Ddp>(std::move(out));
}

}  // namespace ddp
