#include "mnist/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace mnist {
namespace {

std::vector<double> Numbers(const std::string& line) {
  std::vector<double> out;
  std::istringstream in(line);
  std::string word;
  while (in >> word) out.push_back(std::strtod(word.c_str(), nullptr));
  return out;
}

torch::Tensor ToTensor(const std::vector<double>& numbers, size_t from = 0) {
  std::vector<float> floats(numbers.begin() + static_cast<int64_t>(from), numbers.end());
  return torch::tensor(floats);
}

// Each block of the data file was written by torch.optim (tests/trainer/optimizer_golden.py).
// `compare` sees our parameters and Python's after each step.
void Replay(bool flat, const std::function<void(const std::string& name, const torch::Tensor& ours,
                                                const torch::Tensor& theirs, int step)>& compare) {
  std::ifstream file(TEST_DATA_DIR "/optimizers.txt");
  std::string line;
  int blocks = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream head(line);
    std::string name;
    double momentum = 0;
    int steps = 0;
    head >> name >> momentum >> steps;
    std::getline(file, line);
    auto p = ToTensor(Numbers(line)).requires_grad_(true);
    p.mutable_grad() = torch::zeros_like(p);
    NamedParameters parameters{{"p"}, {p}, {}, {}};
    if (flat) {
      parameters.flat = p.detach();
      parameters.flat_gradients = p.grad();
    }
    auto optimizer = name == "adadelta" ? MakeAdadelta(parameters) : MakeSgd(parameters, momentum);
    for (int step = 0; step < steps; ++step) {
      std::getline(file, line);
      const auto numbers = Numbers(line);
      p.mutable_grad().copy_(ToTensor(numbers, 1));
      optimizer->Step(numbers[0]);
      std::getline(file, line);
      compare(name, p.detach(), ToTensor(Numbers(line)), step);
      // The state goes through a checkpoint half way.
      if (step == steps / 2) {
        const auto state = optimizer->State();
        optimizer->Reset();
        ASSERT_TRUE(optimizer->Restore(state).ok());
      }
    }
    ++blocks;
  }
  ASSERT_EQ(blocks, 3);
}

TEST(Optimizer, PlainPathEqualsTorchOptimToTheLastBit) {
  Replay(false, [](auto& name, auto& ours, auto& theirs, int step) {
    ASSERT_TRUE(torch::equal(ours, theirs)) << name << " step " << step;
  });
}

TEST(Optimizer, FusedPathDiffersByRoundingOnly) {
  Replay(true, [](auto& name, auto& ours, auto& theirs, int step) {
    ASSERT_TRUE(torch::allclose(ours, theirs, 1e-5, 1e-6)) << name << " step " << step;
  });
}

TEST(Optimizer, RestoreRefusesAStateThatDoesNotFit) {
  auto p = torch::ones({3});
  p.mutable_grad() = torch::ones({3});
  auto optimizer = MakeAdadelta({{"p"}, {p}, {}, {}});
  EXPECT_FALSE(optimizer->Restore({}).ok());
  EXPECT_FALSE(optimizer->Restore({{"square_avg.p", torch::ones({4})}}).ok());
}

}  // namespace
}  // namespace mnist
