#include "mnist/optimizer.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <map>

namespace mnist {
namespace {

constexpr double kRho = 0.9;
constexpr double kEps = 1e-6;
constexpr int64_t kGrain = 16384;

// One clone for each instruction set: the loop is limited by memory only when it is vectorized.
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("no-math-errno")))
#endif
void FusedAdadelta(float* __restrict p, const float* __restrict g, float* __restrict square_avg,
                   float* __restrict acc_delta, float lr, int64_t n) {
  constexpr float rho = kRho, rest = 1 - kRho, eps = kEps;
  for (int64_t i = 0; i < n; ++i) {
    const float grad = g[i];
    const float square = square_avg[i] * rho + rest * grad * grad;
    const float delta = std::sqrt(acc_delta[i] + eps) / std::sqrt(square + eps) * grad;
    square_avg[i] = square;
    acc_delta[i] = acc_delta[i] * rho + rest * delta * delta;
    p[i] -= lr * delta;
  }
}

// Per-parameter state tensors, laid out as the parameters are; with a flat parameter buffer they
// are views of one buffer too.
class StateTensors {
 public:
  StateTensors(std::string name, const NamedParameters& parameters)
      : name_(std::move(name)), parameter_names_(parameters.names) {
    int64_t size = 0;
    for (const auto& p : parameters.tensors) size += p.numel();
    flat_ = torch::zeros({size}, parameters.tensors[0].options().requires_grad(false));
    int64_t offset = 0;
    for (const auto& p : parameters.tensors) {
      views_.push_back(flat_.as_strided(p.sizes(), p.strides(), offset));
      offset += p.numel();
    }
  }
  torch::Tensor& flat() { return flat_; }
  torch::Tensor& operator[](size_t i) { return views_[i]; }
  void Zero() { flat_.zero_(); }

  void AppendTo(ddp::NamedTensors& out) const {
    for (size_t i = 0; i < views_.size(); ++i) {
      out.emplace_back(name_ + "." + parameter_names_[i], views_[i].contiguous().clone());
    }
  }
  ddp::Result<void> Restore(const ddp::NamedTensors& state) {
    const std::map<std::string, torch::Tensor> by_name(state.begin(), state.end());
    for (size_t i = 0; i < views_.size(); ++i) {
      const auto found = by_name.find(name_ + "." + parameter_names_[i]);
      if (found == by_name.end() || found->second.sizes() != views_[i].sizes()) {
        return ddp::Error{ddp::ErrorKind::kDamaged, "the checkpoint's optimizer state lacks " +
                                                        name_ + "." + parameter_names_[i] +
                                                        " or has it in another shape"};
      }
      views_[i].copy_(found->second);
    }
    return {};
  }

 private:
  std::string name_;
  std::vector<std::string> parameter_names_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> views_;
};

class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(const NamedParameters& parameters)
      : parameters_(parameters),
        square_avg_("square_avg", parameters),
        acc_delta_("acc_delta", parameters) {}

  void Step(double lr) override {
    torch::NoGradGuard no_grad;
    if (parameters_.flat.defined() && parameters_.flat.device().is_cpu()) {
      auto* p = parameters_.flat.data_ptr<float>();
      const auto* g = parameters_.flat_gradients.data_ptr<float>();
      auto* square = square_avg_.flat().data_ptr<float>();
      auto* acc = acc_delta_.flat().data_ptr<float>();
      at::parallel_for(0, parameters_.flat.numel(), kGrain, [&](int64_t from, int64_t to) {
        FusedAdadelta(p + from, g + from, square + from, acc + from, static_cast<float>(lr),
                      to - from);
      });
      return;
    }
    if (parameters_.flat.defined()) {
      StepOne(parameters_.flat, parameters_.flat_gradients, square_avg_.flat(), acc_delta_.flat(),
              lr);
      return;
    }
    for (size_t i = 0; i < parameters_.tensors.size(); ++i) {
      StepOne(parameters_.tensors[i], parameters_.tensors[i].grad(), square_avg_[i], acc_delta_[i],
              lr);
    }
  }

  void Reset() override {
    square_avg_.Zero();
    acc_delta_.Zero();
  }
  ddp::NamedTensors State() const override {
    ddp::NamedTensors out;
    square_avg_.AppendTo(out);
    acc_delta_.AppendTo(out);
    return out;
  }
  ddp::Result<void> Restore(const ddp::NamedTensors& state) override {
    if (auto done = square_avg_.Restore(state); !done) return done;
    return acc_delta_.Restore(state);
  }

 private:
  static void StepOne(torch::Tensor p, const torch::Tensor& grad, torch::Tensor& square_avg,
                      torch::Tensor& acc_delta, double lr) {
    square_avg.mul_(kRho).addcmul_(grad, grad, 1 - kRho);
    const auto std = square_avg.add(kEps).sqrt_();
    const auto delta = acc_delta.add(kEps).sqrt_().div_(std).mul_(grad);
    acc_delta.mul_(kRho).addcmul_(delta, delta, 1 - kRho);
    p.add_(delta, -lr);
  }

  NamedParameters parameters_;
  StateTensors square_avg_;
  StateTensors acc_delta_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const NamedParameters& parameters, double momentum)
      : parameters_(parameters),
        momentum_(momentum),
        buffer_("momentum_buffer", parameters),
        started_(torch::zeros({1}, torch::kLong)) {}

  void Step(double lr) override {
    torch::NoGradGuard no_grad;
    const bool first = started_.item<int64_t>() == 0;
    started_.fill_(1);
    if (parameters_.flat.defined()) {
      StepOne(parameters_.flat, parameters_.flat_gradients, buffer_.flat(), first, lr);
      return;
    }
    for (size_t i = 0; i < parameters_.tensors.size(); ++i) {
      StepOne(parameters_.tensors[i], parameters_.tensors[i].grad(), buffer_[i], first, lr);
    }
  }
  void Reset() override {
    buffer_.Zero();
    started_.zero_();
  }
  ddp::NamedTensors State() const override {
    ddp::NamedTensors out;
    buffer_.AppendTo(out);
    out.emplace_back("momentum_started", started_.clone());
    return out;
  }
  ddp::Result<void> Restore(const ddp::NamedTensors& state) override {
    for (const auto& [name, tensor] : state) {
      if (name == "momentum_started") started_.copy_(tensor);
    }
    return buffer_.Restore(state);
  }

 private:
  void StepOne(torch::Tensor p, const torch::Tensor& grad, torch::Tensor& buffer, bool first,
               double lr) const {
    if (momentum_ == 0) {
      p.add_(grad, -lr);
      return;
    }
    if (first) {
      buffer.copy_(grad);
    } else {
      buffer.mul_(momentum_).add_(grad);
    }
    p.add_(buffer, -lr);
  }

  NamedParameters parameters_;
  double momentum_;
  StateTensors buffer_;
  torch::Tensor started_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdadelta(const NamedParameters& parameters) {
  return std::make_unique<Adadelta>(parameters);
}

std::unique_ptr<Optimizer> MakeSgd(const NamedParameters& parameters, double momentum) {
  return std::make_unique<Sgd>(parameters, momentum);
}

}  // namespace mnist
