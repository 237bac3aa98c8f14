#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ddp/communicator.h"
#include "ddp/result.h"

// The door to all that depends on LibTorch's version or on a backend: backend.cpp alone includes
// c10d. The rest of the library knows only these types.
namespace ddp {

// A key-value store that all ranks reach. Never blocks for a key that is not there.
class Store {
 public:
  virtual ~Store() = default;
  virtual Result<void> Set(const std::string& key, const std::string& value) = 0;
  virtual Result<bool> Has(const std::string& key) = 0;
  virtual Result<std::string> Get(const std::string& key) = 0;  // the key must be there
};

struct StoreAddress {
  std::string host;
  uint16_t port = 0;
  bool is_server = false;  // this process hosts it
};

// A client whose server does not answer fails with kUnreachable after `timeout`.
Result<std::shared_ptr<Store>> OpenStore(const StoreAddress& address, const std::string& prefix,
                                         int world_size, std::chrono::milliseconds timeout);

struct GroupOptions {
  int rank = 0;
  int world_size = 1;
  bool nccl = false;
  int gpu = -1;
  std::string interface;  // network interface for Gloo; if empty:
  std::string address;    // local address for Gloo
  std::chrono::milliseconds timeout{60000};
};

// `store` must come from OpenStore.
Result<std::unique_ptr<Communicator>> MakeCommunicator(std::shared_ptr<Store> store,
                                                       const GroupOptions& options);

// For a process that is alone: every call succeeds and changes nothing.
std::unique_ptr<Communicator> MakeSoloCommunicator();

// c10d::Reducer: averages gradients in buckets while backward runs.
class BucketReducer {
 public:
  virtual ~BucketReducer() = default;
  // True once, when the buckets were laid out anew in the order in which gradients became ready.
  virtual bool PrepareForward() = 0;
  virtual void PrepareBackward() = 0;
};

// `communicator` must come from MakeCommunicator and outlive the reducer.
Result<std::unique_ptr<BucketReducer>> MakeBucketReducer(Communicator& communicator,
                                                         std::vector<at::Tensor> parameters,
                                                         int64_t first_bucket_bytes,
                                                         int64_t bucket_bytes);

// Runs `work`, which may reach the network by way of LibTorch, and turns an exception into an Error
// that names the lost rank.
Result<void> GuardCollective(Communicator& communicator, const std::function<void()>& work);

// A LibTorch exception's text without its C++ stack.
std::string ExceptionText(const std::exception& exception);

// Keeps c10d's own warnings and stack traces off stderr, unless TORCH_CPP_LOG_LEVEL asks for them.
void QuietBackendLogs();

// Number of CUDA devices that this build can use.
int GpuCount();

}  // namespace ddp
