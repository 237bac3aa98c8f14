#include "mnist/training.h"

#include <zlib.h>

#include <chrono>
#include <cmath>

#include "ddp/distributed_sampler.h"
#include "mnist/python_format.h"

namespace mnist {
namespace {

using ddp::Error;
using ddp::ErrorKind;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Python's DataLoader draws a seed for its workers from the default generator each time that it is
// iterated. Drawing it too keeps dropout in step with Python.
void DrawLoaderSeed() { torch::empty({}, torch::kLong).random_(); }

NetName ToNetName(NetChoice choice) {
  return choice == NetChoice::kConv3x3 ? NetName::kConv3x3 : NetName::kConv5x5;
}

Error NotFinite(int64_t epoch, int64_t batch) {
  return {ErrorKind::kFailed, "Loss is not finite in epoch " + std::to_string(epoch) + ", batch " +
                                  std::to_string(batch) +
                                  ". A smaller --lr may help; the model is not saved"};
}

}  // namespace

ddp::Result<TestResult> Evaluate(Net& net, const ResidentData& data, const Options& options,
                                 ddp::Communicator& communicator, bool stop, bool* stopped) {
  torch::NoGradGuard no_grad;
  net.eval();
  DrawLoaderSeed();
  ddp::DistributedSampler sampler{.size = data.size(),
                                  .world_size = communicator.world_size(),
                                  .rank = communicator.rank(),
                                  .shuffle = false};
  const auto indices = sampler.Indices().slice(0, 0, sampler.OwnSamples());
  double correct = 0, loss = 0;
  for (int64_t from = 0; from < indices.size(0); from += options.test_batch_size) {
    const auto batch = data.Gather(
        indices.slice(0, from, std::min(from + options.test_batch_size, indices.size(0)))
            .contiguous());
    const auto output = net.Forward(batch.images).to(torch::kFloat);
    // Summed in double over single samples, so that the sum hardly depends on how they are shared
    // out.
    loss += torch::nll_loss(output, batch.labels, {}, torch::Reduction::None)
                .to(torch::kDouble)
                .sum()
                .item<double>();
    correct += output.argmax(1).eq(batch.labels).sum().item<double>();
  }
  net.train();
  auto sums = torch::tensor({correct, loss, static_cast<double>(indices.size(0)), stop ? 1.0 : 0.0},
                            torch::kDouble);
  if (auto reduced = communicator.AllReduce(sums, ddp::ReduceOp::kSum); !reduced) {
    return reduced.error();
  }
  const auto* sum = sums.data_ptr<double>();
  if (stopped) *stopped = sum[3] > 0;
  return TestResult{static_cast<int64_t>(sum[0]), static_cast<int64_t>(sum[2]), sum[1] / sum[2]};
}

Training::Training(const TrainingContext& context)
    : context_(context),
      options_(context.options),
      train_(context.dataset.train, options_.normalize, context.device),
      test_(context.dataset.test, options_.normalize, context.device) {}

ddp::Result<std::unique_ptr<Training>> Training::Create(const TrainingContext& context) {
  std::unique_ptr<Training> out(new Training(context));
  if (auto ready = out->Prepare(); !ready) return ready.error();
  return out;
}

ddp::Result<void> Training::Prepare() {
  torch::manual_seed(options_.seed);
  net_ = MakeNet(ToNetName(options_.net));
  net_->to(context_.device);
  if (!options_.exact) {
    torch::NoGradGuard no_grad;
    for (auto& p : net_->parameters()) {
      if (p.dim() == 4) p.set_data(p.detach().contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }
  ddp::DdpOptions ddp_options;
  ddp_options.mode = options_.ddp == DdpChoice::kReducer ? ddp::DdpOptions::Mode::kReducer
                                                         : ddp::DdpOptions::Mode::kFlat;
  auto made =
      ddp::Ddp::Create(net_->parameters(), net_->buffers(), context_.communicator, ddp_options);
  if (!made) return made.error();
  ddp_ = std::move(*made);

  NamedParameters parameters;
  for (const auto& entry : net_->named_parameters()) {
    parameters.names.push_back(entry.key());
    parameters.tensors.push_back(entry.value());
  }
  if (!options_.exact) {
    parameters.flat = ddp_->flat_parameters();
    parameters.flat_gradients = ddp_->flat_gradients();
  }
  optimizer_ = options_.recipe == Recipe::kDigits ? MakeAdadelta(parameters)
                                                  : MakeSgd(parameters, options_.momentum);
  return Start();
}

int64_t Training::BatchesPerEpoch() const {
  const int world_size = context_.communicator.world_size();
  const int64_t samples = (train_.size() + world_size - 1) / world_size;
  return (samples + options_.batch_size - 1) / options_.batch_size;
}

torch::Tensor Training::EpochIndices() const {
  const int world_size = context_.communicator.world_size();
  // The digits example reads the data in file order when it is alone.
  if (world_size == 1 && options_.recipe == Recipe::kDigits && !options_.reshuffle) {
    return torch::arange(train_.size(), torch::kLong);
  }
  ddp::DistributedSampler sampler{
      .size = train_.size(), .world_size = world_size, .rank = context_.communicator.rank()};
  if (options_.reshuffle) sampler.epoch = static_cast<uint64_t>(position_.epoch - 1);
  return sampler.Indices();
}

double Training::LearningRate() const {
  if (options_.recipe == Recipe::kFashion) return options_.lr;
  // As torch's StepLR computes it: one multiplication an epoch.
  double lr = options_.lr;
  for (int64_t epoch = 1; epoch < position_.epoch; ++epoch) lr *= options_.gamma;
  return lr;
}

ddp::Result<void> Training::ReportLoss(const torch::Tensor& loss, int64_t batch, int64_t batches,
                                       int64_t samples) {
  const float value = loss.item<float>();
  if (!std::isfinite(value)) return NotFinite(position_.epoch, batch);
  if (context_.report) {
    context_.report->Train({.epoch = position_.epoch,
                            .batch = batch,
                            .batches = batches,
                            .samples_seen = batch * samples,
                            .dataset_size = train_.size(),
                            .loss = value});
  }
  return {};
}

ddp::Result<void> Training::TrainEpoch() {
  const auto indices = EpochIndices();
  const int64_t samples = indices.size(0);
  const int64_t batches = BatchesPerEpoch();
  const double lr = LearningRate();
  // The fashion example makes its optimizer anew each epoch.
  if (options_.recipe == Recipe::kFashion && position_.batch == 0) optimizer_->Reset();
  if (position_.batch == 0) DrawLoaderSeed();
  for (; position_.batch < batches && !result_.stopped; ++position_.batch) {
    const int64_t from = position_.batch * options_.batch_size;
    const auto batch =
        train_.Gather(indices.slice(0, from, std::min(from + options_.batch_size, samples)));
    if (auto ready = ddp_->BeforeForward(); !ready) return ready;
    const auto loss = torch::nll_loss(net_->Forward(batch.images), batch.labels);
    auto outcome = ddp_->Backward(loss, context_.stop.requested());
    if (!outcome) return outcome.error();
    if (outcome->buckets_rebuilt && context_.report) context_.report->BucketsRebuilt();
    optimizer_->Step(lr);
    result_.stopped = outcome->stop;
    result_.images += batch.labels.size(0) * context_.communicator.world_size();
    if (position_.batch % options_.log_interval == 0) {
      auto reported = ReportLoss(loss.detach(), position_.batch, batches, batch.labels.size(0));
      if (!reported) return reported;
    }
    const int64_t done = position_.batch + 1;
    if (options_.checkpoint_every > 0 && done % options_.checkpoint_every == 0 && done < batches &&
        !result_.stopped) {
      ++position_.batch;
      auto saved = SaveCheckpoint();
      --position_.batch;
      if (!saved) return saved;
    }
  }
  return {};
}

ddp::Result<void> Training::TestEpoch() {
  bool stopped = false;
  auto test =
      Evaluate(*net_, test_, options_, context_.communicator, context_.stop.requested(), &stopped);
  if (!test) return test.error();
  if (!std::isfinite(test->loss)) return NotFinite(position_.epoch, position_.batch);
  result_.test = *test;
  result_.stopped |= stopped;
  if (context_.report) {
    context_.report->Test({.epoch = position_.epoch,
                           .correct = test->correct,
                           .total = test->total,
                           .loss = test->loss});
  }
  return {};
}

ddp::Result<TrainingResult> Training::Run() {
  net_->train();
  while (position_.epoch <= options_.epochs && !result_.stopped) {
    auto start = Clock::now();
    if (auto trained = TrainEpoch(); !trained) return trained.error();
    result_.train_seconds += SecondsSince(start);
    if (result_.stopped) break;
    start = Clock::now();
    if (auto tested = TestEpoch(); !tested) return tested.error();
    result_.evaluate_seconds += SecondsSince(start);
    result_.epochs = position_.epoch;
    position_ = {position_.epoch + 1, 0};
    if (!result_.stopped) {
      if (auto saved = SaveCheckpoint(); !saved) return saved.error();
    }
    if (options_.target_accuracy > 0 && result_.test.accuracy() >= options_.target_accuracy) break;
  }
  if (result_.stopped) {
    if (auto saved = SaveCheckpoint(); !saved) return saved.error();
  }
  return result_;
}

ddp::NamedTensors Training::Model() const {
  ddp::NamedTensors out;
  for (const auto& entry : net_->named_parameters()) {
    out.emplace_back(entry.key(), entry.value().detach().to(torch::kCPU).contiguous());
  }
  return out;
}

std::string Training::ParametersDigest() const {
  uLong crc = crc32(0, nullptr, 0);
  for (const auto& [name, tensor] : Model()) {
    crc = crc32_z(crc, static_cast<const Bytef*>(tensor.data_ptr()), tensor.nbytes());
  }
  char text[16];
  std::snprintf(text, sizeof(text), "%08lx", crc);
  return text;
}

}  // namespace mnist
