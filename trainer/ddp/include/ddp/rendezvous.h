#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ddp/communicator.h"
#include "ddp/environment.h"
#include "ddp/result.h"

namespace ddp {

enum class Backend {
  kAuto,  // NCCL if every rank has a GPU of its own, else Gloo; agreed between the ranks
  kGloo,
  kNccl,
};

struct RendezvousOptions {
  Backend backend = Backend::kAuto;
  // For the group to come together: workers may start long before their master's name resolves.
  std::chrono::milliseconds rendezvous_timeout = std::chrono::minutes(10);
  // For each collective call: a rank that hangs is noticed after this long.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(1);
  // While waiting, `log` is told what is waited for: once at first, then after each interval.
  std::chrono::milliseconds notice_interval = std::chrono::seconds(30);
  int gpu = -1;  // index of the GPU that this rank will use, -1 = none
  std::function<void(const std::string& line)> log = [](const std::string&) {};
};

// Brings the ranks of `environment` together through a store on rank 0, and returns when all of
// them have joined. Fails with kUnreachable naming host, port, this rank and who is missing.
Result<std::unique_ptr<Communicator>> Rendezvous(const Environment& environment,
                                                 const RendezvousOptions& options);

}  // namespace ddp
