#include "mnist/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "mnist/flag_words.h"

namespace mnist {
namespace {

using ddp::Error;
using ddp::ErrorKind;

// What the user wrote, before a recipe's defaults are known.
struct Raw {
  Options options;
  std::string recipe = "mnist", net, dataset, backend = "auto", log_format = "plain", data;
  std::string timeout = "60s", rendezvous_timeout = "10m", nproc, precision = "fp32", ddp = "flat";
  std::string graph = "auto", logger;
  std::optional<int64_t> epochs;
  std::optional<double> lr;
  std::optional<bool> normalize;
  bool version = false;
};

const CLI::Validator kPositive(
    [](std::string& text) {
      int64_t value = 0;
      return CLI::detail::lexical_cast(text, value) && value > 0
                 ? std::string()
                 : "'" + text + "' is not a whole number above 0";
    },
    "POSITIVE");

void AddFlags(CLI::App& app, Raw& raw) {
  auto& o = raw.options;
  auto words = [](std::vector<std::string> allowed) { return CLI::IsMember(std::move(allowed)); };
  app.add_option("--recipe", raw.recipe,
                 "mnist (\"digits\") or fashion-mnist: net, data, optimizer")
      ->check(words({"mnist", "fashion-mnist"}));
  app.add_option("--net", raw.net, "conv3x3 or conv5x5; default: the recipe's")
      ->check(words({"conv3x3", "conv5x5"}));
  app.add_option("--dataset", raw.dataset, "mnist or fashion-mnist; default: the recipe's")
      ->check(words({"mnist", "fashion-mnist"}));
  // Not bound to the optional itself: the parser would set it also when the flag is absent.
  app.add_flag_function(
      "--normalize,!--no-normalize", [&raw](int64_t count) { raw.normalize = count > 0; },
      "shift and scale by MNIST's mean and deviation; default: the recipe's");
  app.add_option("--data", raw.data,
                 "directory of IDX files or torchvision's tree; default: the first of $MNIST_DATA, "
                 "./datasets, ../data, /datasets that holds the set");
  app.add_flag("--download", o.download, "fetch the data set when it is not there");
  app.add_option("--batch-size", o.batch_size, "samples a step and rank")->check(kPositive);
  app.add_option("--test-batch-size", o.test_batch_size, "samples a step of the test")
      ->check(kPositive);
  app.add_option("--epochs", raw.epochs, "default: 5 for mnist, 1 for fashion-mnist")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--lr", raw.lr, "learning rate; default: 1.0 for mnist, 0.01 for fashion-mnist")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--momentum", o.momentum, "of SGD (fashion-mnist)")->check(CLI::Range(0.0, 1.0));
  app.add_option("--gamma", o.gamma, "factor on the learning rate after each epoch (mnist)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", o.seed, "of weights and dropout");
  app.add_option("--log-interval", o.log_interval, "steps from one loss line to the next")
      ->check(kPositive);
  app.add_option("--backend", raw.backend, "gloo, nccl or auto")
      ->check(words({"auto", "gloo", "nccl", "mpi"}));
  app.add_flag("--no-cuda", o.no_cuda, "train on the CPU even where there is a GPU");
  app.add_flag("--save-model,!--no-save-model", o.save_model,
               "write the model at the end (default)");
  app.add_option("--model-path", o.model_path, "where to write it; evaluate: what to read");
  app.add_option("--dir", o.tensorboard_dir, "directory for TensorBoard's event files; '' = none");
  app.add_option("--log-path", o.log_path, "file for the metric lines instead of stdout");
  app.add_option("--log-format", raw.log_format, "plain, rfc3339, python, metricname or json")
      ->check(words({"plain", "rfc3339", "python", "metricname", "json"}));
  app.add_option("--checkpoint-dir", o.checkpoint_dir, "keep checkpoints there and resume from it");
  app.add_option("--checkpoint-every", o.checkpoint_every, "steps; default: once an epoch")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--resume", o.resume, "auto, never, or a checkpoint's path");
  app.add_option("--init-from", o.init_from, "state_dict to start from");
  app.add_option("--timeout", raw.timeout, "a rank that hangs is noticed after this long");
  app.add_option("--rendezvous-timeout", raw.rendezvous_timeout,
                 "how long to wait for the other ranks at the start");
  app.add_option("--nproc-per-node", raw.nproc,
                 "ranks to start in this pod: a number, auto, gpu or cpu; default: "
                 "$PET_NPROC_PER_NODE, else 1");
  app.add_flag("--reshuffle", o.reshuffle, "another order of the samples each epoch");
  app.add_option("--precision", raw.precision, "fp32, tf32, bf16 or auto")
      ->check(words({"fp32", "tf32", "bf16", "auto"}));
  app.add_option("--ddp", raw.ddp, "flat (one all-reduce) or reducer (buckets, overlapped)")
      ->check(words({"flat", "reducer"}));
  app.add_option("--threads", o.threads,
                 "of each rank; default: $OMP_NUM_THREADS, else the cgroup's")
      ->check(kPositive);
  app.add_option("--graph", raw.graph, "replay steps as a CUDA graph: auto, on or off")
      ->check(words({"auto", "on", "off"}));
  app.add_option("--target-accuracy", o.target_accuracy, "stop after an epoch that reaches it")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--exact", o.exact, "same operations as PyTorch's Python front end, same losses");
  app.add_option("--summary", o.summary, "write the final figures there as JSON");
  app.add_flag("--version", raw.version, "print the version");
  app.add_option("--logger", raw.logger, "taken for compatibility: use --log-format")->group("");
}

template <class E>
E Pick(const std::string& word, std::initializer_list<std::pair<const char*, E>> words) {
  for (const auto& [text, value] : words) {
    if (word == text) return value;
  }
  return words.begin()->second;  // the flag's validator admits no other word
}

ddp::Result<int> ParseProcesses(const std::string& text, int gpu_count) {
  if (text.empty() || text == "cpu") return 1;
  if (text == "auto" || text == "gpu") return std::max(1, gpu_count);
  int value = 0;
  if (CLI::detail::lexical_cast(text, value) && value > 0 && value <= 1024) return value;
  return Error{ErrorKind::kInvalid,
               "--nproc-per-node: '" + text + "' is neither a number above 0 nor auto, gpu or cpu"};
}

ddp::Result<Options> Resolve(Raw raw, const OptionsContext& context) {
  Options o = std::move(raw.options);
  const bool digits = raw.recipe == "mnist";
  o.recipe = digits ? Recipe::kDigits : Recipe::kFashion;
  o.net = Pick<NetChoice>(raw.net.empty() ? (digits ? "conv3x3" : "conv5x5") : raw.net,
                          {{"conv3x3", NetChoice::kConv3x3}, {"conv5x5", NetChoice::kConv5x5}});
  o.dataset = Pick<DatasetName>(
      raw.dataset.empty() ? raw.recipe : raw.dataset,
      {{"mnist", DatasetName::kMnist}, {"fashion-mnist", DatasetName::kFashionMnist}});
  o.normalize = raw.normalize.value_or(digits);
  o.epochs = raw.epochs.value_or(digits ? 5 : 1);
  o.lr = raw.lr.value_or(digits ? 1.0 : 0.01);
  if (raw.data.empty()) {
    o.data = DefaultDataDirectories(context.get_env);
  } else {
    o.data = {raw.data};
  }
  if (raw.backend == "mpi") {
    return Error{ErrorKind::kInvalid,
                 "--backend mpi: this build has no MPI. Use gloo (CPU and GPU) or nccl (GPU)"};
  }
  o.backend = Pick<BackendChoice>(raw.backend, {{"auto", BackendChoice::kAuto},
                                                {"gloo", BackendChoice::kGloo},
                                                {"nccl", BackendChoice::kNccl}});
  o.log_format = Pick<LogFormat>(raw.log_format, {{"plain", LogFormat::kPlain},
                                                  {"rfc3339", LogFormat::kRfc3339},
                                                  {"python", LogFormat::kPython},
                                                  {"metricname", LogFormat::kMetricName},
                                                  {"json", LogFormat::kJson}});
  o.precision = Pick<Precision>(raw.precision, {{"fp32", Precision::kFp32},
                                                {"tf32", Precision::kTf32},
                                                {"bf16", Precision::kBf16},
                                                {"auto", Precision::kAuto}});
  o.ddp = Pick<DdpChoice>(raw.ddp, {{"flat", DdpChoice::kFlat}, {"reducer", DdpChoice::kReducer}});
  o.graph = Pick<GraphChoice>(
      raw.graph,
      {{"auto", GraphChoice::kAuto}, {"on", GraphChoice::kOn}, {"off", GraphChoice::kOff}});
  for (auto [flag, text, to] :
       {std::tuple("--timeout", &raw.timeout, &o.timeout),
        std::tuple("--rendezvous-timeout", &raw.rendezvous_timeout, &o.rendezvous_timeout)}) {
    auto duration = ParseDuration(*text);
    if (!duration) return Error{ErrorKind::kInvalid, flag + (": " + duration.error().message)};
    *to = *duration;
  }
  const char* from_environment = context.get_env("PET_NPROC_PER_NODE");
  if (raw.nproc.empty() && from_environment) raw.nproc = from_environment;
  auto processes = ParseProcesses(raw.nproc, context.gpu_count);
  if (!processes) return processes.error();
  o.nproc_per_node = *processes;
  if (!raw.logger.empty()) {
    o.warnings.push_back("--logger " + raw.logger + " has no meaning here: see --log-format");
  }
  return o;
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

ddp::Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  const Error wrong{ErrorKind::kInvalid, "'" + text + "' is no duration such as 60s, 10m or 1h30m"};
  static constexpr std::pair<const char*, double> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  double total = 0;
  size_t at = 0;
  if (text.empty()) return wrong;
  while (at < text.size()) {
    size_t used = 0;
    double number = 0;
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) return wrong;
    try {
      number = std::stod(text.substr(at), &used);
    } catch (const std::exception&) {
      return wrong;
    }
    at += used;
    size_t end = at;
    while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]))) ++end;
    const auto unit = text.substr(at, end - at);
    if (unit.empty() && end == text.size() && used == text.size())
      return std::chrono::milliseconds(static_cast<int64_t>(number * 1000));
    const auto known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                    [&](const auto& u) { return unit == u.first; });
    if (known == std::end(kUnits)) return wrong;
    total += number * known->second;
    at = end;
  }
  if (total < 1 || total > 1e12) return wrong;
  return std::chrono::milliseconds(static_cast<int64_t>(total));
}

ddp::Result<Options> ParseOptions(const std::vector<std::string>& arguments,
                                  const OptionsContext& context) {
  std::vector<std::string> words = arguments;
  bool evaluate = false;
  if (!words.empty() && (words[0] == "evaluate" || words[0] == "train")) {
    evaluate = words[0] == "evaluate";
    words.erase(words.begin());
  }
  Raw raw;
  CLI::App app("", "mnist-trainer");
  AddFlags(app, raw);
  std::vector<std::string> flags;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) flags.push_back(name);
    for (const auto& name : option->get_fnames()) flags.push_back(name);
  }
  auto expanded = ExpandPrefixes(words, flags);
  if (!expanded) return expanded.error();
  try {
    std::vector<std::string> reversed(expanded->rbegin(), expanded->rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    raw.options.command = Command::kHelp;
    return raw.options;
  } catch (const CLI::ExtrasError& e) {
    const auto extra = app.remaining();
    return Error{ErrorKind::kInvalid, "unknown argument " +
                                          (extra.empty() ? OneLine(e.what()) : extra[0]) +
                                          ". See mnist-trainer --help"};
  } catch (const CLI::ParseError& e) {
    return Error{ErrorKind::kInvalid, OneLine(e.what()) + ". See mnist-trainer --help"};
  }
  if (raw.version) {
    raw.options.command = Command::kVersion;
    return raw.options;
  }
  auto options = Resolve(std::move(raw), context);
  if (options && evaluate) options->command = Command::kEvaluate;
  return options;
}

std::string HelpText() {
  Raw raw;
  CLI::App app(
      "Trains MNIST or FashionMNIST, alone or as DistributedDataParallel (WORLD_SIZE, RANK, "
      "MASTER_ADDR, MASTER_PORT).\n`mnist-trainer evaluate --model-path FILE` tests a saved model.",
      "mnist-trainer");
  AddFlags(app, raw);
  return app.help();
}

std::map<std::string, std::string> SharedFacts(const Options& o) {
  auto number = [](auto value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  return {{"--recipe", o.recipe == Recipe::kDigits ? "mnist" : "fashion-mnist"},
          {"--net", o.net == NetChoice::kConv3x3 ? "conv3x3" : "conv5x5"},
          {"--dataset", ToString(o.dataset)},
          {"--normalize", o.normalize ? "on" : "off"},
          {"--batch-size", number(o.batch_size)},
          {"--epochs", number(o.epochs)},
          {"--lr", number(o.lr)},
          {"--momentum", number(o.momentum)},
          {"--gamma", number(o.gamma)},
          {"--seed", number(o.seed)},
          {"--reshuffle", o.reshuffle ? "on" : "off"},
          {"--ddp", o.ddp == DdpChoice::kFlat ? "flat" : "reducer"},
          {"--exact", o.exact ? "on" : "off"},
          {"--log-interval", number(o.log_interval)},
          {"--checkpoint-every", number(o.checkpoint_every)},
          {"--target-accuracy", number(o.target_accuracy)}};
}

}  // namespace mnist
