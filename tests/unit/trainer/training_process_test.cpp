#include <gmock/gmock.h>

#include <regex>

#include "trainer_process.h"

namespace trainer_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class Train : public TrainerTest {};

std::string LineWith(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string line, found;
  while (std::getline(lines, line)) {
    if (line.find(part) != std::string::npos) found = line;
  }
  return found;
}

TEST_F(Train, AloneWithDefaultsOfTheTutorial) {
  auto run = Start("alone", {"--epochs", "2", "--log-interval", "5"}, {});
  ASSERT_EQ(run->Wait(), 0) << run->err();
  EXPECT_THAT(run->out(), MatchesRegex("Epoch: 1 \\(  0.0%\\) - Loss: [0-9]+\\.[0-9]+\n"
                                       "Epoch: 1 \\( 50.0%\\) - Loss: [0-9.e-]+\n"
                                       "Test accuracy: [0-9]+/100 \\([ 0-9.]+%\\)\n"
                                       "loss=[0-9]+\\.[0-9]{4}\n"
                                       "accuracy=[01]\\.[0-9]{4}\n"
                                       "Epoch: 2 \\(  0.0%\\) - Loss: [0-9.e-]+\n"
                                       "Epoch: 2 \\( 50.0%\\) - Loss: [0-9.e-]+\n"
                                       "Test accuracy: [0-9]+/100 \\([ 0-9.]+%\\)\n"
                                       "loss=[0-9]+\\.[0-9]{4}\n"
                                       "accuracy=[01]\\.[0-9]{4}\n"));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "mnist_model.pt"));
}

TEST_F(Train, LearnsTheSyntheticSet) {
  auto run = Start("alone", {"--epochs=3"}, {});
  ASSERT_EQ(run->Wait(), 0) << run->err();
  const auto accuracy = std::stod(LineWith(run->out(), "accuracy=").substr(9));
  EXPECT_GE(accuracy, 0.97) << run->out();
}

TEST_F(Train, SeveralRanksEndWithEqualParameters) {
  for (const char* mode : {"flat", "reducer"}) {
    for (int world_size : {2, 3}) {
      auto ranks =
          StartRanks(world_size, {"--epochs=1", "--batch-size=16", std::string("--ddp=") + mode});
      std::string digest;
      for (auto& rank : ranks) {
        ASSERT_EQ(rank->Wait(), 0) << rank->err();
        const auto line = LineWith(rank->err(), "parameters digest");
        const auto own = line.substr(line.find("digest"));
        if (digest.empty()) digest = own;
        EXPECT_EQ(own, digest) << mode << ", " << world_size << " ranks";
      }
      ASSERT_THAT(digest, MatchesRegex("digest [0-9a-f]+"));
      EXPECT_THAT(ranks[0]->out(), HasSubstr("Using distributed PyTorch with gloo backend\n"));
      EXPECT_EQ(ranks[1]->out(), "") << "metric lines come from rank 0 alone";
      if (std::string(mode) == "reducer") {
        EXPECT_THAT(ranks[0]->out(),
                    HasSubstr("Reducer buckets have been rebuilt in this iteration.\n"));
      }
    }
  }
}

TEST_F(Train, FlatAndReducerGiveTheSameBitsForTwoRanks) {
  for (const char* mode : {"flat", "reducer"}) {
    auto ranks = StartRanks(2, {"--epochs=1", "--batch-size=32", std::string("--ddp=") + mode,
                                "--exact", "--model-path", std::string(mode) + ".pt"});
    for (auto& rank : ranks) ASSERT_EQ(rank->Wait(), 0) << rank->err();
  }
  EXPECT_EQ(ReadFile(directory_ / "flat.pt"), ReadFile(directory_ / "reducer.pt"));
}

TEST_F(Train, FashionPrintsItsOwnLines) {
  WriteDataset(directory_ / "datasets/FashionMNIST/raw");
  auto ranks = StartRanks(2, {"--recipe=fashion-mnist"});
  for (auto& rank : ranks) ASSERT_EQ(rank->Wait(), 0) << rank->err();
  EXPECT_THAT(ranks[0]->out(), MatchesRegex("Using distributed PyTorch with gloo backend\n"
                                            "World Size: 2. Rank: 0\n"
                                            "Train Epoch: 1 \\[0/640 \\(0%\\)\\]\tloss=[0-9.]+\n"
                                            "\naccuracy=[01]\\.[0-9]{4}\n\n"));
}

TEST_F(Train, MetricsOfTheTestAreThoseOfTheWholeSet) {
  // 100 test images do not divide by 3: the padding must not count.
  auto ranks = StartRanks(3, {"--epochs=1", "--no-save-model"});
  for (auto& rank : ranks) ASSERT_EQ(rank->Wait(), 0) << rank->err();
  EXPECT_THAT(LineWith(ranks[0]->out(), "Test accuracy"), MatchesRegex(".*/100 \\(.*"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "mnist_model.pt"));
}

// Needs the real data: tools/datasets.sh puts it into the cache.
TEST(RealMnist, OneEpochOfTheTutorialsRecipe) {
  std::string data;
  if (const char* given = std::getenv("MNIST_DATA")) {
    data = given;
  } else {
    const char* cache = std::getenv("PTO_CACHE");
    const char* home = std::getenv("HOME");
    data =
        (cache ? std::string(cache) : std::string(home ? home : "") + "/.cache/pytorch-operator") +
        "/datasets/mnist";
  }
  ASSERT_TRUE(std::filesystem::is_directory(data))
      << "real MNIST is not in " << data << ": run tools/datasets.sh, or set MNIST_DATA";
  TemporaryDirectory directory;
  Process run(directory.path(), "run",
              {MNIST_TRAINER, "--data", data, "--epochs=1", "--log-interval=400"}, {});
  ASSERT_EQ(run.Wait(), 0) << run.err();
  const auto accuracy = std::stod(LineWith(run.out(), "accuracy=").substr(9));
  EXPECT_GT(accuracy, 0.975) << run.out();
}

}  // namespace
}  // namespace trainer_test
