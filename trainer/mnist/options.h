#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ddp/environment.h"
#include "ddp/result.h"
#include "mnist/dataset.h"
#include "mnist/report.h"

namespace mnist {

enum class Recipe { kDigits, kFashion };
enum class NetChoice { kConv3x3, kConv5x5 };
enum class BackendChoice { kAuto, kGloo, kNccl };
enum class Precision { kFp32, kTf32, kBf16, kAuto };
enum class DdpChoice { kFlat, kReducer };
enum class GraphChoice { kAuto, kOn, kOff };
enum class Command { kTrain, kEvaluate, kHelp, kVersion };

// What the command line says, with each recipe's defaults filled in.
struct Options {
  Command command = Command::kTrain;
  Recipe recipe = Recipe::kDigits;
  NetChoice net = NetChoice::kConv3x3;
  DatasetName dataset = DatasetName::kMnist;
  bool normalize = true;                    // (x - 0.1307) / 0.3081 after / 255
  std::vector<std::filesystem::path> data;  // --data, else the directories that are searched
  bool download = false;
  int64_t batch_size = 64;  // of each rank
  int64_t test_batch_size = 1000;
  int64_t epochs = 5;
  double lr = 1.0;
  double momentum = 0.5;
  double gamma = 0.7;
  int64_t seed = 1;
  int64_t log_interval = 10;  // batches
  BackendChoice backend = BackendChoice::kAuto;
  bool no_cuda = false;
  bool save_model = true;
  std::filesystem::path model_path = "mnist_model.pt";
  std::filesystem::path tensorboard_dir = "logs";
  std::filesystem::path log_path;  // empty = stdout
  LogFormat log_format = LogFormat::kPlain;
  std::filesystem::path checkpoint_dir;  // empty = no checkpoints
  int64_t checkpoint_every = 0;          // steps; 0 = once an epoch
  std::string resume = "auto";           // "auto", "never" or a file
  std::filesystem::path init_from;
  std::chrono::milliseconds timeout{60000};
  std::chrono::milliseconds rendezvous_timeout{600000};
  int nproc_per_node = 1;
  bool reshuffle = false;
  Precision precision = Precision::kFp32;
  DdpChoice ddp = DdpChoice::kFlat;
  int threads = 0;  // 0 = by the cgroup
  GraphChoice graph = GraphChoice::kAuto;
  double target_accuracy = 0;  // stop after an epoch that reaches it; 0 = never
  bool exact = false;
  std::filesystem::path summary;  // empty = none

  std::vector<std::string> warnings;  // for stderr, each once
};

struct OptionsContext {
  ddp::GetEnv get_env;
  int gpu_count = 0;
};

// `arguments` without the program's name. The error is one line for the user.
ddp::Result<Options> ParseOptions(const std::vector<std::string>& arguments,
                                  const OptionsContext& context);

std::string HelpText();

// The options that must be equal on every rank, by flag name.
std::map<std::string, std::string> SharedFacts(const Options& options);

// "60s", "10m", "1h30m", "500ms", "45" (seconds).
ddp::Result<std::chrono::milliseconds> ParseDuration(const std::string& text);

}  // namespace mnist
