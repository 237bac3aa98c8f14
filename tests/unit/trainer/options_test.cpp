#include "mnist/options.h"

#include <gmock/gmock.h>

namespace mnist {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

const OptionsContext kContext{.get_env = [](const char*) { return nullptr; }, .gpu_count = 0};

Options Parse(const std::vector<std::string>& arguments) {
  auto options = ParseOptions(arguments, kContext);
  EXPECT_TRUE(options.ok()) << (options ? "" : options.error().message);
  return options ? *options : Options{};
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  auto options = ParseOptions(arguments, kContext);
  if (options) return "no error";
  EXPECT_EQ(options.error().kind, ddp::ErrorKind::kInvalid);
  EXPECT_EQ(options.error().message.find('\n'), std::string::npos) << options.error().message;
  return options.error().message;
}

TEST(Options, DigitsIsTheDefaultRecipe) {
  const auto o = Parse({});
  EXPECT_EQ(o.recipe, Recipe::kDigits);
  EXPECT_EQ(o.net, NetChoice::kConv3x3);
  EXPECT_EQ(o.dataset, DatasetName::kMnist);
  EXPECT_TRUE(o.normalize);
  EXPECT_EQ(o.epochs, 5);
  EXPECT_EQ(o.lr, 1.0);
  EXPECT_EQ(o.batch_size, 64);
  EXPECT_EQ(o.test_batch_size, 1000);
  EXPECT_EQ(o.seed, 1);
  EXPECT_EQ(o.log_interval, 10);
  EXPECT_TRUE(o.save_model);
  EXPECT_EQ(o.model_path, "mnist_model.pt");
  EXPECT_EQ(o.timeout, milliseconds(60'000));
  EXPECT_EQ(o.rendezvous_timeout, milliseconds(600'000));
}

TEST(Options, FashionBringsItsOwnDefaults) {
  const auto o = Parse({"--recipe", "fashion-mnist"});
  EXPECT_EQ(o.net, NetChoice::kConv5x5);
  EXPECT_EQ(o.dataset, DatasetName::kFashionMnist);
  EXPECT_FALSE(o.normalize);
  EXPECT_EQ(o.epochs, 1);
  EXPECT_EQ(o.lr, 0.01);
  EXPECT_EQ(o.momentum, 0.5);
}

TEST(Options, PartsOfARecipeCanBeReplaced) {
  const auto o = Parse({"--recipe=fashion-mnist", "--net=conv3x3", "--dataset=mnist", "--normalize",
                        "--epochs=3", "--lr=0.5"});
  EXPECT_EQ(o.recipe, Recipe::kFashion);
  EXPECT_EQ(o.net, NetChoice::kConv3x3);
  EXPECT_EQ(o.dataset, DatasetName::kMnist);
  EXPECT_TRUE(o.normalize);
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.lr, 0.5);
  EXPECT_FALSE(Parse({"--no-normalize"}).normalize);
}

TEST(Options, TheTutorialsCommandLines) {
  const auto digits = Parse({"--epochs", "15", "--seed", "7", "--log-interval", "256"});
  EXPECT_EQ(digits.epochs, 15);
  EXPECT_EQ(digits.seed, 7);
  EXPECT_EQ(digits.log_interval, 256);
  EXPECT_EQ(Parse({"--epochs=1"}).epochs, 1);
  const auto gloo = Parse({"--backend", "gloo", "--no-cuda"});
  EXPECT_EQ(gloo.backend, BackendChoice::kGloo);
  EXPECT_TRUE(gloo.no_cuda);
  EXPECT_FALSE(Parse({"--no-save-model"}).save_model);
  EXPECT_TRUE(Parse({"--save-model"}).save_model);
}

TEST(Options, UnambiguousPrefixes) {
  EXPECT_EQ(Parse({"--epo", "2"}).epochs, 2);
  EXPECT_EQ(Parse({"--batch=32"}).batch_size, 32);
  EXPECT_THAT(ErrorOf({"--se"}), HasSubstr("--seed"));
  EXPECT_THAT(ErrorOf({"--log", "x"}),
              AllOf(HasSubstr("could mean"), HasSubstr("--log-interval"), HasSubstr("--log-path")));
  // An exact name wins over longer ones that begin with it.
  EXPECT_EQ(Parse({"--net", "conv5x5"}).net, NetChoice::kConv5x5);
}

TEST(Options, WrongFlagsAndValuesGetOneClearLine) {
  EXPECT_THAT(ErrorOf({"--epoch-count=3"}), HasSubstr("--epoch-count"));
  EXPECT_THAT(ErrorOf({"stray"}), HasSubstr("stray"));
  EXPECT_THAT(ErrorOf({"--epochs", "many"}), AllOf(HasSubstr("--epochs"), HasSubstr("many")));
  EXPECT_THAT(ErrorOf({"--epochs"}), HasSubstr("--epochs"));
  EXPECT_THAT(ErrorOf({"--batch-size=0"}), AllOf(HasSubstr("--batch-size"), HasSubstr("above 0")));
  EXPECT_THAT(ErrorOf({"--batch-size=-4"}), HasSubstr("--batch-size"));
  EXPECT_THAT(ErrorOf({"--recipe", "cifar"}), AllOf(HasSubstr("--recipe"), HasSubstr("cifar")));
  EXPECT_THAT(ErrorOf({"--timeout", "soon"}),
              AllOf(HasSubstr("--timeout"), HasSubstr("'soon' is no duration")));
  EXPECT_THAT(ErrorOf({"--backend", "mpi"}), HasSubstr("this build has no MPI"));
  EXPECT_THAT(ErrorOf({"--backend", "smoke"}), HasSubstr("--backend"));
  EXPECT_THAT(ErrorOf({"--nproc-per-node", "none"}), HasSubstr("--nproc-per-node"));
}

TEST(Options, PythonsFlagsWithoutMeaningAreTakenWithOneWarning) {
  const auto o = Parse({"--logger", "standard"});
  ASSERT_EQ(o.warnings.size(), 1u);
  EXPECT_THAT(o.warnings[0], HasSubstr("--logger standard has no meaning here"));
}

TEST(Options, ProcessesPerNode) {
  auto processes = [](const std::vector<std::string>& arguments, const char* variable, int gpus) {
    auto options = ParseOptions(
        arguments, {.get_env =
                        [=](const char* name) {
                          return std::string(name) == "PET_NPROC_PER_NODE" ? variable : nullptr;
                        },
                    .gpu_count = gpus});
    return options ? options->nproc_per_node : -1;
  };
  EXPECT_EQ(processes({}, nullptr, 4), 1);
  EXPECT_EQ(processes({}, "2", 4), 2);
  EXPECT_EQ(processes({"--nproc-per-node=3"}, "2", 4), 3);
  EXPECT_EQ(processes({}, "auto", 4), 4);
  EXPECT_EQ(processes({}, "gpu", 0), 1);
  EXPECT_EQ(processes({}, "cpu", 4), 1);
}

TEST(Options, HelpVersionAndEvaluate) {
  EXPECT_EQ(Parse({"--help"}).command, Command::kHelp);
  EXPECT_EQ(Parse({"--version"}).command, Command::kVersion);
  const auto o = Parse({"evaluate", "--model-path", "m.pt"});
  EXPECT_EQ(o.command, Command::kEvaluate);
  EXPECT_EQ(o.model_path, "m.pt");
  const auto help = HelpText();
  for (const char* flag : {"--recipe", "--rendezvous-timeout", "--exact", "--summary", "--ddp"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST(Duration, ReadsUnitsAndTheirSums) {
  EXPECT_EQ(*ParseDuration("60s"), milliseconds(60'000));
  EXPECT_EQ(*ParseDuration("10m"), milliseconds(600'000));
  EXPECT_EQ(*ParseDuration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(*ParseDuration("45"), milliseconds(45'000));
  for (const char* wrong : {"", "s", "5x", "-1s", "1s2", "0s", "nan"}) {
    EXPECT_FALSE(ParseDuration(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace mnist
