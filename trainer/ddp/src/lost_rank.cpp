#include "lost_rank.h"

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace ddp {
namespace {

constexpr auto kWindow = std::chrono::milliseconds(800);

// nullopt: the store failed.
std::optional<std::vector<int>> SilentRanks(Store& store, int rank, int world_size) {
  const auto deadline = std::chrono::steady_clock::now() + kWindow;
  if (!store.Set("alive/" + std::to_string(rank), "1")) return std::nullopt;
  std::vector<int> silent;
  do {
    silent.clear();
    for (int r = 0; r < world_size; ++r) {
      auto alive = store.Has("alive/" + std::to_string(r));
      if (!alive) return std::nullopt;
      if (!*alive) silent.push_back(r);
    }
    if (silent.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (std::chrono::steady_clock::now() < deadline);
  return silent;
}

}  // namespace

Error LostRankError(std::shared_ptr<Store> store, int rank, int world_size,
                    const std::string& cause) {
  // A stopped rank 0 leaves the store's calls without an answer for ever, so they run in a thread
  // that is given up if need be; it owns all that it touches.
  std::promise<std::optional<std::vector<int>>> promise;
  auto answer = promise.get_future();
  std::thread([store, rank, world_size, promise = std::move(promise)]() mutable {
    promise.set_value(SilentRanks(*store, rank, world_size));
  }).detach();

  const bool hung = cause.find("imed out") != std::string::npos;
  const std::string fate = hung ? " does not answer" : " is gone";
  std::string who;
  if (answer.wait_for(kWindow + std::chrono::milliseconds(400)) != std::future_status::ready) {
    who = "rank 0 does not answer";
  } else if (auto silent = answer.get(); !silent) {
    who = rank == 0 ? "the store failed" : "rank 0" + fate;
  } else if (silent->empty()) {
    who = "a connection between ranks broke though all of them live";
  } else {
    who = silent->size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < silent->size(); ++i) {
      who += (i ? ", " : "") + std::to_string((*silent)[i]);
    }
    who += silent->size() == 1 ? fate : (hung ? " do not answer" : " are gone");
  }
  return {ErrorKind::kPeerLost, who + " (" + cause + ")"};
}

}  // namespace ddp
