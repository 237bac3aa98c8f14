#include "ddp/rendezvous.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <thread>

#include "backend.h"
#include "network.h"

namespace ddp {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kPollInterval = milliseconds(100);

std::string Seconds(milliseconds duration) {
  std::ostringstream out;
  out << static_cast<double>(duration.count()) / 1000 << " s";
  return out.str();
}

// Says what is waited for at once, and again after each interval.
class Notice {
 public:
  explicit Notice(const RendezvousOptions& options) : options_(options) {}
  void Say(const std::string& line) {
    const auto now = Clock::now();
    if (said_ && now - last_ < options_.notice_interval) return;
    options_.log(line);
    said_ = true;
    last_ = now;
  }

 private:
  const RendezvousOptions& options_;
  bool said_ = false;
  Clock::time_point last_;
};

std::string Where(const Environment& environment) {
  return environment.master_addr + ":" + std::to_string(environment.master_port);
}

// Returns this process's end of the connection.
Result<std::string> WaitForMaster(const Environment& environment, const RendezvousOptions& options,
                                  Clock::time_point deadline) {
  Notice notice(options);
  milliseconds pause(100);
  while (true) {
    auto attempt = TryConnect(environment.master_addr, environment.master_port, milliseconds(2000));
    if (attempt.connected) return attempt.local_address;
    const auto now = Clock::now();
    if (now >= deadline) {
      return Error{ErrorKind::kUnreachable,
                   "rank " + std::to_string(environment.rank) + " of " +
                       std::to_string(environment.world_size) + " could not reach the master at " +
                       Where(environment) + " within " + Seconds(options.rendezvous_timeout) +
                       " (" + attempt.failure +
                       "). Missing: rank 0. Does the master run, and are MASTER_ADDR and "
                       "MASTER_PORT right?"};
    }
    notice.Say("waiting for the master at " + Where(environment) + " (" + attempt.failure + ")");
    std::this_thread::sleep_for(std::min(
        pause, std::chrono::duration_cast<milliseconds>(deadline - now) + milliseconds(1)));
    pause = std::min(pause * 2, milliseconds(1000));
  }
}

// What a rank tells the others when it joins.
struct JoinRecord {
  std::string address;  // its end of the connection to the master; empty on rank 0
  std::string host;
  int gpu = -1;

  std::string Encode() const { return std::to_string(gpu) + "\n" + address + "\n" + host; }
  static JoinRecord Decode(const std::string& text) {
    JoinRecord out;
    std::istringstream lines(text);
    std::string gpu;
    std::getline(lines, gpu);
    out.gpu = std::atoi(gpu.c_str());
    std::getline(lines, out.address);
    std::getline(lines, out.host);
    return out;
  }
};

std::string JoinKey(int rank) { return "join/" + std::to_string(rank); }

Result<std::vector<JoinRecord>> WaitForAll(Store& store, const Environment& environment,
                                           const RendezvousOptions& options,
                                           Clock::time_point deadline) {
  Notice notice(options);
  // A group that starts together needs no notice.
  const auto quiet_until = Clock::now() + milliseconds(1000);
  std::vector<int> missing(environment.world_size);
  for (int r = 0; r < environment.world_size; ++r) missing[r] = r;
  while (true) {
    std::vector<int> still;
    for (int r : missing) {
      auto joined = store.Has(JoinKey(r));
      if (!joined) return Error{ErrorKind::kUnreachable, joined.error().message};
      if (!*joined) still.push_back(r);
    }
    missing = still;
    if (missing.empty()) break;
    std::string names;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (i == 20) {
        names += " and " + std::to_string(missing.size() - i) + " more";
        break;
      }
      names += (i ? ", " : "") + std::to_string(missing[i]);
    }
    const auto now = Clock::now();
    if (now >= deadline) {
      return Error{ErrorKind::kUnreachable,
                   "rank " + std::to_string(environment.rank) + ": " +
                       std::to_string(environment.world_size - missing.size()) + " of " +
                       std::to_string(environment.world_size) + " ranks joined at " +
                       Where(environment) + " within " + Seconds(options.rendezvous_timeout) +
                       ". Missing: rank " + names};
    }
    if (now >= quiet_until) {
      notice.Say("waiting for " + std::to_string(missing.size()) + " of " +
                 std::to_string(environment.world_size) + " ranks: " + names);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  std::vector<JoinRecord> records;
  for (int r = 0; r < environment.world_size; ++r) {
    auto text = store.Get(JoinKey(r));
    if (!text) return Error{ErrorKind::kUnreachable, text.error().message};
    records.push_back(JoinRecord::Decode(*text));
  }
  return records;
}

Result<bool> ChooseNccl(Backend wanted, const std::vector<JoinRecord>& records) {
  if (wanted == Backend::kGloo) return false;
  std::set<std::pair<std::string, int>> devices;
  for (size_t r = 0; r < records.size(); ++r) {
    const bool own_gpu =
        records[r].gpu >= 0 && devices.emplace(records[r].host, records[r].gpu).second;
    if (own_gpu) continue;
    if (wanted == Backend::kAuto) return false;
    return Error{ErrorKind::kInvalid,
                 "the nccl backend needs a GPU of its own for every rank, but rank " +
                     std::to_string(r) +
                     (records[r].gpu < 0 ? " has none" : " shares one with another rank") +
                     ". Use --backend gloo, or give each rank a GPU"};
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Rendezvous(const Environment& environment,
                                                 const RendezvousOptions& options) {
  QuietBackendLogs();
  if (environment.world_size == 1) return MakeSoloCommunicator();
  const auto deadline = Clock::now() + options.rendezvous_timeout;
  const bool is_server = environment.rank == 0 && !environment.agent_hosts_store;

  StoreAddress address{environment.master_addr, environment.master_port, is_server};
  JoinRecord own{"", HostIdentity(), options.gpu};
  if (is_server) {
    // Its own name may not resolve yet: a headless Service lists ready pods only.
    address.host = "127.0.0.1";
  } else {
    auto local = WaitForMaster(environment, options, deadline);
    if (!local) return local.error();
    own.address = *local;
  }
  const auto left = std::chrono::duration_cast<milliseconds>(
      std::max(deadline - Clock::now(), Clock::duration(std::chrono::seconds(1))));
  auto store = OpenStore(address, "ddp/" + environment.attempt, environment.world_size, left);
  if (!store) return store.error();
  if (auto set = (*store)->Set(JoinKey(environment.rank), own.Encode()); !set) {
    return Error{ErrorKind::kUnreachable, set.error().message};
  }
  auto records = WaitForAll(**store, environment, options, deadline);
  if (!records) return records.error();

  auto nccl = ChooseNccl(options.backend, *records);
  if (!nccl) return nccl.error();
  std::vector<std::string> addresses;
  for (const auto& record : *records) addresses.push_back(record.address);
  GroupOptions group;
  group.rank = environment.rank;
  group.world_size = environment.world_size;
  group.nccl = *nccl;
  group.gpu = options.gpu;
  group.interface = environment.interface;
  group.address = ChooseAddress(addresses, environment.rank, SourceAddressFor);
  group.timeout = options.collective_timeout;
  return MakeCommunicator(*store, group);
}

}  // namespace ddp
