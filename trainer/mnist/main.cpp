#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "ddp/environment.h"
#include "ddp/host.h"
#include "ddp/rendezvous.h"
#include "ddp/state_dict.h"
#include "ddp/stop_signal.h"
#include "mnist/dataset.h"
#include "mnist/options.h"
#include "mnist/report.h"
#include "mnist/training.h"

namespace mnist {
namespace {

using ddp::Error;
using ddp::ErrorKind;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
// Retryable under the operator's ExitCode policy (128 and above, here 128 + SIGUSR1 = 138): another
// rank's trouble, or a late master, is not this process's fault.
constexpr int kExitRetry = 138;

const char* GetEnv(const char* name) { return std::getenv(name); }

int ExitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return kExitUsage;
    case ErrorKind::kUnreachable:
    case ErrorKind::kPeerLost:
      return kExitRetry;
    default:
      return kExitFailed;
  }
}

class Program {
 public:
  explicit Program(ddp::StopSignal& stop) : stop_(stop) {}

  int Run(const std::vector<std::string>& arguments) {
    auto options = ParseOptions(arguments, {.get_env = GetEnv, .gpu_count = 0});
    if (!options) return Fail(options.error());
    options_ = std::move(*options);
    if (options_.command == Command::kHelp) {
      std::cout << HelpText();
      return 0;
    }
    if (options_.command == Command::kVersion) {
      std::cout << "mnist-trainer " << TRAINER_VERSION << ", LibTorch " << TORCH_VERSION << "\n";
      return 0;
    }
    auto environment = ddp::ReadEnvironment(GetEnv);
    if (!environment) return Fail(environment.error());
    environment_ = *environment;
    for (const auto& warning : options_.warnings) Log("warning: " + warning);
    auto done = Train();
    return done ? *done : Fail(done.error());
  }

  void Log(const std::string& line) const {
    std::cerr << "rank " + std::to_string(environment_.rank) + ": " + line + "\n" << std::flush;
  }

 private:
  int Fail(const Error& error) const {
    Log("error: " + error.message);
    return ExitCode(error.kind);
  }

  void SetThreads() const {
    int threads = options_.threads;
    if (threads == 0) {
      if (const char* omp = std::getenv("OMP_NUM_THREADS")) threads = std::atoi(omp);
    }
    if (threads <= 0) {
      threads = ddp::DefaultThreads(ddp::CgroupCpuQuota(), ddp::UsableCpus(),
                                    environment_.local_world_size, environment_.world_size);
    }
    at::set_num_threads(threads);
  }

  ddp::Result<int> Train() {
    auto dataset = LoadDataset(options_.data, options_.dataset);
    if (!dataset) return dataset.error();
    SetThreads();
    ddp::RendezvousOptions rendezvous;
    rendezvous.backend = ddp::Backend::kGloo;
    rendezvous.rendezvous_timeout = options_.rendezvous_timeout;
    rendezvous.collective_timeout = options_.timeout;
    rendezvous.log = [this](const std::string& line) { Log(line); };
    auto communicator = ddp::Rendezvous(environment_, rendezvous);
    if (!communicator) return communicator.error();
    auto facts = SharedFacts(options_);
    facts["training samples"] = std::to_string(dataset->train.size);
    facts["test samples"] = std::to_string(dataset->test.size);
    if (auto agreed = ddp::CheckAgreement(**communicator, facts); !agreed) return agreed.error();

    Report report(
        options_.recipe == Recipe::kDigits ? LineStyle::kDigits : LineStyle::kFashion,
        options_.log_format, [](const std::string& lines) { std::cout << lines << std::flush; },
        [] { return std::chrono::system_clock::now(); });
    if (environment_.rank == 0) {
      const bool fashion = options_.recipe == Recipe::kFashion;
      if (fashion || environment_.world_size > 1) {
        report.UsingBackend(environment_.world_size > 1 ? (*communicator)->backend() : "gloo");
      }
      if (fashion) report.WorldSize(environment_.world_size, environment_.rank);
    }
    stop_.set_immediate(false);
    auto training = Training::Create({.options = options_,
                                      .dataset = *dataset,
                                      .communicator = **communicator,
                                      .stop = stop_,
                                      .report = environment_.rank == 0 ? &report : nullptr,
                                      .log = [this](const std::string& line) { Log(line); }});
    if (!training) return training.error();
    auto result = (*training)->Run();
    if (!result) return result.error();
    if (result->stopped) return stop_.requested() ? 128 + stop_.signal() : kExitRetry;
    const auto digest = (*training)->ParametersDigest();
    Log("parameters digest " + digest);
    if (auto equal = ddp::CheckAgreement(**communicator, {{"parameters digest", digest}}); !equal) {
      return equal.error();
    }
    if (options_.save_model && environment_.rank == 0) {
      if (auto saved = ddp::SaveStateDict((*training)->Model(), options_.model_path); !saved) {
        return saved.error();
      }
    }
    if (environment_.rank == 0) {
      char line[200];
      std::snprintf(line, sizeof(line),
                    "accuracy %.4f, loss %.4f, %.0f images/s, %.1f s training, %.1f s testing",
                    result->test.accuracy(), result->test.loss,
                    static_cast<double>(result->images) / result->train_seconds,
                    result->train_seconds, result->evaluate_seconds);
      Log(line);
    }
    if (auto finished = (*communicator)->Finish(); !finished) return finished.error();
    return 0;
  }

  ddp::StopSignal& stop_;
  Options options_;
  ddp::Environment environment_;
};

}  // namespace
}  // namespace mnist

int main(int argc, char** argv) {
  ddp::KeepFreedMemory();
  ddp::StopSignal stop(/*immediate=*/true);
  mnist::Program program(stop);
  int code = 1;
  try {
    code = program.Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    program.Log(std::string("error: ") + e.what());
  }
  std::cout << std::flush;
  std::fflush(nullptr);
  // Backend threads may still sit in the network: nothing is left to be saved, so they are not
  // waited for.
  _exit(code);
}
