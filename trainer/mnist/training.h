#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ddp/checkpoint.h"
#include "ddp/communicator.h"
#include "ddp/ddp.h"
#include "ddp/result.h"
#include "ddp/stop_signal.h"
#include "mnist/dataset.h"
#include "mnist/nets.h"
#include "mnist/optimizer.h"
#include "mnist/options.h"
#include "mnist/report.h"
#include "mnist/resident_data.h"

namespace mnist {

// What training needs from outside. All must outlive the Training.
struct TrainingContext {
  const Options& options;
  const Dataset& dataset;
  ddp::Communicator& communicator;
  const ddp::StopSignal& stop;
  Report* report = nullptr;  // null on every rank but 0
  std::function<void(const std::string&)> log;
  torch::Device device = torch::kCPU;
};

// Where the next step stands.
struct Position {
  int64_t epoch = 1;
  int64_t batch = 0;
};

struct TestResult {
  int64_t correct = 0;
  int64_t total = 0;
  double loss = 0;  // mean
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(total); }
};

struct TrainingResult {
  TestResult test;     // of the last epoch
  int64_t images = 0;  // trained on, by all ranks
  double train_seconds = 0;
  double evaluate_seconds = 0;
  int64_t epochs = 0;
  bool stopped = false;  // by a signal to some rank
};

// Test set over all ranks; every rank gets the same figures. `stop` is this rank's wish to stop;
// `stopped` tells whether any rank had it.
ddp::Result<TestResult> Evaluate(Net& net, const ResidentData& data, const Options& options,
                                 ddp::Communicator& communicator, bool stop, bool* stopped);

// One job's training on this rank.
class Training {
 public:
  static ddp::Result<std::unique_ptr<Training>> Create(const TrainingContext& context);

  ddp::Result<TrainingResult> Run();
  ddp::NamedTensors Model() const;  // state_dict, copied to the CPU
  // Of the parameters' bytes, in hexadecimal: equal on all ranks, or something is broken.
  std::string ParametersDigest() const;

 private:
  explicit Training(const TrainingContext& context);
  ddp::Result<void> Prepare();
  // In training_checkpoint.cpp. Every rank makes these calls; rank 0 alone reads and writes files.
  ddp::Result<void> Start();           // --init-from, --resume
  ddp::Result<void> SaveCheckpoint();  // nothing without --checkpoint-dir
  ddp::Result<void> Restore(const ddp::NamedTensors& checkpoint);
  ddp::Result<void> SetParameters(const ddp::NamedTensors& tensors, const std::string& prefix,
                                  const std::string& source);
  ddp::Result<void> TrainEpoch();
  ddp::Result<void> TestEpoch();
  ddp::Result<void> ReportLoss(const torch::Tensor& loss, int64_t batch, int64_t batches,
                               int64_t samples);
  torch::Tensor EpochIndices() const;
  int64_t BatchesPerEpoch() const;
  double LearningRate() const;

  const TrainingContext context_;
  const Options& options_;
  std::shared_ptr<Net> net_;
  ResidentData train_;
  ResidentData test_;
  std::unique_ptr<ddp::Ddp> ddp_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<ddp::CheckpointDirectory> checkpoints_;  // rank 0, with --checkpoint-dir
  Position position_;
  TrainingResult result_;
};

}  // namespace mnist
