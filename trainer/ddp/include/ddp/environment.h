#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ddp/result.h"

namespace ddp {

// A process's place among the ranks, as torchrun and the operator put it into the environment.
struct Environment {
  int rank = 0;              // RANK
  int world_size = 1;        // WORLD_SIZE: number of processes, not of pods
  int local_rank = 0;        // LOCAL_RANK: number of this process within its pod
  int local_world_size = 1;  // LOCAL_WORLD_SIZE: processes within this pod
  std::string master_addr;   // MASTER_ADDR: where rank 0 hosts the store
  uint16_t master_port = 0;  // MASTER_PORT
  std::string interface;     // GLOO_SOCKET_IFNAME: empty = by the route to the master
  // TORCHELASTIC_USE_AGENT_STORE: torchrun's agent hosts the store, so rank 0 must not.
  bool agent_hosts_store = false;
  std::string attempt = "0";  // TORCHELASTIC_RESTART_COUNT: keeps keys of restarts apart
};

// nullptr for a variable that is not set.
using GetEnv = std::function<const char*(const char* name)>;

// Without WORLD_SIZE the process is alone. Names the variable that is missing or wrong.
Result<Environment> ReadEnvironment(const GetEnv& get);

}  // namespace ddp
