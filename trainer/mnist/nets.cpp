#include "mnist/nets.h"

namespace mnist {
namespace {

namespace nn = torch::nn;

class Conv3x3 final : public Net {
 public:
  Conv3x3() {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    register_module("dropout1", dropout1_);
    register_module("dropout2", dropout2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
  }

  torch::Tensor Forward(torch::Tensor x) override {
    x = torch::relu(conv1_(x));
    x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
    x = torch::flatten(dropout1_(x), 1);
    x = dropout2_(torch::relu(fc1_(x)));
    return torch::log_softmax(fc2_(x), 1);
  }

 private:
  nn::Conv2d conv1_{nn::Conv2dOptions(1, 32, 3)};
  nn::Conv2d conv2_{nn::Conv2dOptions(32, 64, 3)};
  nn::Dropout2d dropout1_{0.25};
  // Python's examples have Dropout2d here too, which acts on single elements of a 2-D input there;
  // the C++ one would drop whole samples.
  nn::Dropout dropout2_{0.5};
  nn::Linear fc1_{9216, 128};
  nn::Linear fc2_{128, 10};
};

class Conv5x5 final : public Net {
 public:
  Conv5x5() {
    register_module("conv1", conv1_);
    register_module("conv2", conv2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
  }

  torch::Tensor Forward(torch::Tensor x) override {
    x = torch::max_pool2d(torch::relu(conv1_(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2_(x)), 2);
    x = torch::relu(fc1_(torch::flatten(x, 1)));
    return torch::log_softmax(fc2_(x), 1);
  }

 private:
  nn::Conv2d conv1_{nn::Conv2dOptions(1, 20, 5)};
  nn::Conv2d conv2_{nn::Conv2dOptions(20, 50, 5)};
  nn::Linear fc1_{800, 500};
  nn::Linear fc2_{500, 10};
};

}  // namespace

std::shared_ptr<Net> MakeNet(NetName name) {
  if (name == NetName::kConv3x3) return std::make_shared<Conv3x3>();
  return std::make_shared<Conv5x5>();
}

}  // namespace mnist
