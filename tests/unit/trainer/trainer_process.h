#pragma once

#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "synthetic_data.h"

namespace trainer_test {

// mnist-trainer in a directory of its own, on a small synthetic set.
class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteDataset(directory_ / "datasets"); }

  std::unique_ptr<Process> Start(const std::string& name, std::vector<std::string> arguments,
                                 const Variables& variables) {
    arguments.insert(arguments.begin(), MNIST_TRAINER);
    return std::make_unique<Process>(directory_.path(), name, arguments, variables);
  }

  std::vector<std::unique_ptr<Process>> StartRanks(int world_size,
                                                   const std::vector<std::string>& arguments) {
    port_ = FreePort();
    std::vector<std::unique_ptr<Process>> ranks;
    for (int rank = 0; rank < world_size; ++rank) {
      ranks.push_back(
          Start("rank" + std::to_string(rank), arguments, RankVariables(rank, world_size, port_)));
    }
    return ranks;
  }

  TemporaryDirectory directory_;
  uint16_t port_ = 0;
};

}  // namespace trainer_test
