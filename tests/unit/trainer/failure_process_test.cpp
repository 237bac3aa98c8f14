#include <gmock/gmock.h>

#include "trainer_process.h"

namespace trainer_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Failure : public TrainerTest {};

TEST_F(Failure, WrongFlagIsOneLineAndExit2) {
  auto run = Start("run", {"--no-such-flag"}, {});
  EXPECT_EQ(run->Wait(), 2);
  EXPECT_EQ(run->err(),
            "rank 0: error: unknown argument --no-such-flag. See mnist-trainer --help\n");
}

TEST_F(Failure, MissingDataNamesTheDirectory) {
  auto run = Start("run", {"--data", "/no/such/directory"}, {});
  EXPECT_EQ(run->Wait(), 1);
  EXPECT_THAT(run->err(), AllOf(HasSubstr("the data set mnist is not in /no/such/directory"),
                                HasSubstr("--download")));
}

TEST_F(Failure, MasterThatNeverComesIsExit138WithHostPortAndRank) {
  auto variables = RankVariables(1, 2, FreePort());
  auto run = Start("run", {"--rendezvous-timeout=1s"}, variables);
  EXPECT_EQ(run->Wait(), 138);
  EXPECT_THAT(
      run->err(),
      AllOf(HasSubstr("rank 1: waiting for the master at 127.0.0.1:" + variables["MASTER_PORT"] +
                      " (Connection refused)"),
            HasSubstr("rank 1: error: rank 1 of 2 could not reach the master at 127.0.0.1:" +
                      variables["MASTER_PORT"] + " within 1 s"),
            HasSubstr("Missing: rank 0")));
}

TEST_F(Failure, NameThatNeverResolvesSaysSo) {
  auto variables = RankVariables(1, 2, FreePort());
  variables["MASTER_ADDR"] = "no-such-master.invalid";
  auto run = Start("run", {"--rendezvous-timeout=1s"}, variables);
  EXPECT_EQ(run->Wait(), 138);
  EXPECT_THAT(run->err(),
              AllOf(HasSubstr("no-such-master.invalid:"), HasSubstr("the name does not resolve")));
}

TEST_F(Failure, WorkersThatNeverComeAreNamed) {
  const auto port = FreePort();
  auto master = Start("master", {"--rendezvous-timeout=4s"}, RankVariables(0, 4, port));
  auto worker = Start("worker", {"--rendezvous-timeout=4s"}, RankVariables(2, 4, port));
  EXPECT_EQ(master->Wait(), 138);
  EXPECT_EQ(worker->Wait(), 138);
  EXPECT_THAT(master->err(),
              AllOf(HasSubstr("waiting for"),
                    HasSubstr("error: rank 0: 2 of 4 ranks joined at 127.0.0.1:" +
                              std::to_string(port) + " within 4 s. Missing: rank 1, 3")));
}

TEST_F(Failure, WorkerFirstWaitsAndJoins) {
  const auto port = FreePort();
  auto worker = Start("worker", {"--epochs=1"}, RankVariables(1, 2, port));
  ASSERT_TRUE(worker->WaitUntil(
      [&] { return worker->err().find("waiting for the master") != std::string::npos; }));
  auto master = Start("master", {"--epochs=1"}, RankVariables(0, 2, port));
  EXPECT_EQ(master->Wait(), 0) << master->err();
  EXPECT_EQ(worker->Wait(), 0) << worker->err();
}

TEST_F(Failure, UsedPortIsNamed) {
  const auto port = FreePort();
  auto first = Start("first", {"--rendezvous-timeout=60s"}, RankVariables(0, 2, port));
  ASSERT_TRUE(first->WaitUntil(
      [&] { return first->err().find("waiting for 1 of 2 ranks") != std::string::npos; }));
  auto second = Start("second", {}, RankVariables(0, 2, port));
  EXPECT_EQ(second->Wait(), 1);
  EXPECT_THAT(second->err(), HasSubstr("cannot listen on port " + std::to_string(port)));
}

TEST_F(Failure, RanksThatDisagreeGetTheDifference) {
  const auto port = FreePort();
  auto master = Start("master", {"--batch-size=64"}, RankVariables(0, 2, port));
  auto worker = Start("worker", {"--batch-size=32"}, RankVariables(1, 2, port));
  for (auto* rank : {master.get(), worker.get()}) {
    EXPECT_EQ(rank->Wait(), 1);
    EXPECT_THAT(rank->err(), HasSubstr("the ranks were started differently; --batch-size is 64 on "
                                       "rank 0 and 32 on rank 1"));
  }
}

// `stop_or_kill` goes to rank `victim` of three in mid-training.
class LostPeer : public Failure {
 protected:
  void Lose(int victim, int number, const std::string& text) {
    auto ranks = StartRanks(3, {"--epochs=100000", "--log-interval=1", "--timeout=3s"});
    ASSERT_TRUE(ranks[0]->WaitUntil([&] {
      return ranks[0]->out().find("Epoch: 1 ") != std::string::npos;
    })) << ranks[0]->err();
    ranks[victim]->Signal(number);
    // The survivor that leaves first may be the one that the other sees gone: one of them must name
    // the victim, both must say that they lost a rank and end so that they are retried.
    std::string all;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(ranks[rank]->Wait(), 138) << ranks[rank]->err();
      EXPECT_THAT(ranks[rank]->err(), HasSubstr("error: rank "));
      all += ranks[rank]->err();
    }
    EXPECT_THAT(all, HasSubstr(text));
  }
};

TEST_F(LostPeer, KilledWorkerIsNamed) { Lose(2, SIGKILL, "error: rank 2 is gone"); }
TEST_F(LostPeer, KilledMasterIsNamed) { Lose(0, SIGKILL, "error: rank 0 is gone"); }
TEST_F(LostPeer, StoppedWorkerIsNamed) { Lose(1, SIGSTOP, "error: rank 1 does not answer"); }
TEST_F(LostPeer, StoppedMasterIsNamed) { Lose(0, SIGSTOP, "error: rank 0 does not answer"); }

TEST_F(Failure, DivergenceIsSaidAndNoNanIsPrinted) {
  auto run = Start("run", {"--lr=1e30", "--log-interval=1"}, {});
  EXPECT_EQ(run->Wait(), 1);
  EXPECT_THAT(run->err(), HasSubstr("Loss is not finite"));
  EXPECT_THAT(run->out(), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "mnist_model.pt"));
}

}  // namespace
}  // namespace trainer_test
