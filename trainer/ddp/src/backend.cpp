// All that depends on LibTorch's version or on a backend. Works with 2.6 to 2.13; where signatures
// differ the compiler chooses (see MakeC10dReducer), not a version number.
#include "backend.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#ifdef DDP_CUDA
#include <torch/cuda.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <cstdlib>
#include <thread>
#include <type_traits>

#include "lost_rank.h"

namespace ddp {
namespace {

class C10dStore final : public Store {
 public:
  explicit C10dStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  Result<void> Set(const std::string& key, const std::string& value) override {
    try {
      store_->set(key, std::vector<uint8_t>(value.begin(), value.end()));
      return {};
    } catch (const std::exception& e) {
      return Unreachable(e);
    }
  }
  Result<bool> Has(const std::string& key) override {
    try {
      return store_->check({key});
    } catch (const std::exception& e) {
      return Unreachable(e);
    }
  }
  Result<std::string> Get(const std::string& key) override {
    try {
      auto bytes = store_->get(key);
      return std::string(bytes.begin(), bytes.end());
    } catch (const std::exception& e) {
      return Unreachable(e);
    }
  }
  const c10::intrusive_ptr<c10d::Store>& c10d_store() const { return store_; }

 private:
  static Error Unreachable(const std::exception& e) {
    return {ErrorKind::kPeerLost, "the store on rank 0 does not answer: " + ExceptionText(e)};
  }
  c10::intrusive_ptr<c10d::Store> store_;
};

c10d::ReduceOp::RedOpType ToC10d(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
    case ReduceOp::kSum:
      break;
  }
  return c10d::ReduceOp::SUM;
}

class C10dCommunicator final : public Communicator {
 public:
  C10dCommunicator(std::shared_ptr<Store> store, const GroupOptions& options)
      : store_(std::move(store)), options_(options) {
    auto c10d_store = static_cast<C10dStore&>(*store_).c10d_store();
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
    gloo_options->devices.push_back(
        options.interface.empty()
            ? c10d::ProcessGroupGloo::createDeviceForHostname(options.address)
            : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", c10d_store), options.rank,
        options.world_size, gloo_options);
    using Type = c10d::ProcessGroup::BackendType;
    group_ = c10::make_intrusive<c10d::ProcessGroup>(c10d_store, options.rank, options.world_size);
    group_->setBackend(at::kCPU, Type::GLOO, gloo_);
    Type device_type = Type::GLOO;
    device_ = gloo_;
#ifdef DDP_CUDA
    if (options.nccl) {
      auto nccl_options = c10d::ProcessGroupNCCL::Options::create();
      nccl_options->timeout = options.timeout;
      device_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
          c10::make_intrusive<c10d::PrefixStore>("nccl", c10d_store), options.rank,
          options.world_size, nccl_options);
      device_type = Type::NCCL;
    }
    group_->setBackend(at::kCUDA, device_type, device_);
#endif
    group_->setDefaultBackend(device_type);
    group_->setGroupName("ddp");
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  std::string backend() const override { return options_.nccl ? "nccl" : "gloo"; }
  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }

  Result<void> AllReduce(at::Tensor tensor, ReduceOp op) override {
    return Guard([&] {
      std::vector<at::Tensor> tensors{tensor};
      c10d::AllreduceOptions options;
      options.reduceOp = ToC10d(op);
      BackendFor(tensor).allreduce(tensors, options)->wait();
    });
  }
  Result<void> Broadcast(at::Tensor tensor, int root) override {
    return Guard([&] {
      std::vector<at::Tensor> tensors{tensor};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      BackendFor(tensor).broadcast(tensors, options)->wait();
    });
  }
  Result<void> Barrier() override {
    return Guard([&] { gloo_->barrier()->wait(); });
  }

  Result<std::vector<std::string>> AllGatherText(const std::string& text) override {
    const std::string prefix = "text/" + std::to_string(gathers_++) + "/";
    if (auto set = store_->Set(prefix + std::to_string(rank()), text); !set) return set.error();
    if (auto all_set = Barrier(); !all_set) return all_set.error();
    std::vector<std::string> texts;
    for (int r = 0; r < world_size(); ++r) {
      auto got = store_->Get(prefix + std::to_string(r));
      if (!got) return got.error();
      texts.push_back(*got);
    }
    return texts;
  }

  Result<void> Finish() override {
    if (auto all_here = Barrier(); !all_here) return all_here;
    if (rank() != 0) return store_->Set("left/" + std::to_string(rank()), "1");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (int r = 1; r < world_size(); ++r) {
      while (std::chrono::steady_clock::now() < deadline) {
        auto left = store_->Has("left/" + std::to_string(r));
        if (!left || *left) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    return {};
  }

  Result<void> Guard(const std::function<void()>& work) {
    try {
      work();
      return {};
    } catch (const std::exception& e) {
      return LostRankError(store_, rank(), world_size(), ExceptionText(e));
    }
  }

 private:
  c10d::Backend& BackendFor(const at::Tensor& tensor) {
    return tensor.is_cuda() ? *device_ : *gloo_;
  }

  std::shared_ptr<Store> store_;
  GroupOptions options_;
  c10::intrusive_ptr<c10d::Backend> gloo_;    // CPU tensors
  c10::intrusive_ptr<c10d::Backend> device_;  // CUDA tensors
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  int64_t gathers_ = 0;
};

class SoloCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  std::string backend() const override { return "none"; }
  Result<void> AllReduce(at::Tensor, ReduceOp) override { return {}; }
  Result<void> Broadcast(at::Tensor, int) override { return {}; }
  Result<void> Barrier() override { return {}; }
  Result<std::vector<std::string>> AllGatherText(const std::string& text) override {
    return std::vector<std::string>{text};
  }
  Result<void> Finish() override { return {}; }
};

using Buckets = std::vector<std::vector<size_t>>;
using Names = std::unordered_map<size_t, std::string>;

// The end of the constructor's argument list grew over the versions.
template <class R>
std::unique_ptr<R> MakeC10dReducer(std::vector<at::Tensor> parameters, Buckets buckets,
                                   const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                   int64_t first_bytes, int64_t bytes) {
  std::vector<bool> sparse(parameters.size(), false);
  if constexpr (std::is_constructible_v<R, std::vector<at::Tensor>, Buckets,
                                        c10::intrusive_ptr<c10d::ProcessGroup>, std::vector<bool>,
                                        int64_t, bool, bool, Names, int64_t, bool, bool,
                                        std::vector<int64_t>>) {
    return std::make_unique<R>(std::move(parameters), std::move(buckets), group, sparse, bytes,
                               false, true, Names{}, first_bytes, false, false,
                               std::vector<int64_t>{});
  } else if constexpr (std::is_constructible_v<R, std::vector<at::Tensor>, Buckets,
                                               c10::intrusive_ptr<c10d::ProcessGroup>,
                                               std::vector<bool>, int64_t, bool, bool, Names,
                                               int64_t, bool, bool>) {
    return std::make_unique<R>(std::move(parameters), std::move(buckets), group, sparse, bytes,
                               false, true, Names{}, first_bytes, false, false);
  } else {
    return std::make_unique<R>(std::move(parameters), std::move(buckets), group, sparse, bytes,
                               false, true, Names{}, first_bytes);
  }
}

class C10dReducer final : public BucketReducer {
 public:
  explicit C10dReducer(std::unique_ptr<c10d::Reducer> reducer) : reducer_(std::move(reducer)) {}
  bool PrepareForward() override {
    reducer_->prepare_for_forward();
    return reducer_->rebuild_buckets();
  }
  void PrepareBackward() override { reducer_->prepare_for_backward({}); }

 private:
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace

std::string ExceptionText(const std::exception& exception) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&exception);
  std::string text = torch_error ? torch_error->what_without_backtrace() : exception.what();
  // Gloo and c10d prefix their own source position: "[/path/file.cc:12] text".
  if (text.starts_with("[/")) {
    if (auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  }
  if (auto line_end = text.find('\n'); line_end != std::string::npos) text.resize(line_end);
  return text;
}

void QuietBackendLogs() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
  c10::initLogging();
}

int GpuCount() {
#ifdef DDP_CUDA
  return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
#else
  return 0;
#endif
}

Result<std::shared_ptr<Store>> OpenStore(const StoreAddress& address, const std::string& prefix,
                                         int world_size, std::chrono::milliseconds timeout) {
  try {
    c10d::TCPStoreOptions options;
    options.port = address.port;
    options.isServer = address.is_server;
    options.numWorkers = world_size;
    options.waitWorkers = false;  // Rendezvous waits itself, to say who is missing
    options.timeout = timeout;
    auto store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    return std::shared_ptr<Store>(
        std::make_shared<C10dStore>(c10::make_intrusive<c10d::PrefixStore>(prefix, store)));
  } catch (const std::exception& e) {
    const std::string where = address.host + ":" + std::to_string(address.port);
    if (address.is_server) {
      return Error{ErrorKind::kFailed, "cannot listen on port " + std::to_string(address.port) +
                                           " for the other ranks: " + ExceptionText(e) +
                                           ". Is another process using MASTER_PORT?"};
    }
    return Error{ErrorKind::kUnreachable,
                 "the store at " + where + " does not answer: " + ExceptionText(e)};
  }
}

Result<std::unique_ptr<Communicator>> MakeCommunicator(std::shared_ptr<Store> store,
                                                       const GroupOptions& options) {
  try {
    return std::unique_ptr<Communicator>(
        std::make_unique<C10dCommunicator>(std::move(store), options));
  } catch (const std::exception& e) {
    return Error{
        ErrorKind::kUnreachable,
        "rank " + std::to_string(options.rank) + " could not connect to the other ranks (Gloo on " +
            (options.interface.empty() ? options.address : "interface " + options.interface) +
            "): " + ExceptionText(e)};
  }
}

std::unique_ptr<Communicator> MakeSoloCommunicator() {
  return std::make_unique<SoloCommunicator>();
}

Result<std::unique_ptr<BucketReducer>> MakeBucketReducer(Communicator& communicator,
                                                         std::vector<at::Tensor> parameters,
                                                         int64_t first_bucket_bytes,
                                                         int64_t bucket_bytes) {
  auto& c10d_communicator = static_cast<C10dCommunicator&>(communicator);
  try {
    auto assignment = c10d::compute_bucket_assignment_by_size(
        parameters, {static_cast<size_t>(first_bucket_bytes), static_cast<size_t>(bucket_bytes)},
        std::vector<bool>(parameters.size(), false));
    auto buckets = std::get<0>(assignment);
    // Gradients become ready from the last layer to the first.
    std::reverse(buckets.begin(), buckets.end());
    return std::unique_ptr<BucketReducer>(std::make_unique<C10dReducer>(
        MakeC10dReducer<c10d::Reducer>(std::move(parameters), buckets, c10d_communicator.group(),
                                       first_bucket_bytes, bucket_bytes)));
  } catch (const std::exception& e) {
    return Error{ErrorKind::kFailed, "cannot set up gradient buckets: " + ExceptionText(e)};
  }
}

Result<void> GuardCollective(Communicator& communicator, const std::function<void()>& work) {
  if (auto* c10d_communicator = dynamic_cast<C10dCommunicator*>(&communicator)) {
    return c10d_communicator->Guard(work);
  }
  work();
  return {};
}

}  // namespace ddp
