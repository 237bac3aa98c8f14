#include "runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace runtime {

void ForEachParallel(std::size_t count, std::size_t width,
                     const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  const std::size_t wanted = std::min(count, std::max<std::size_t>(width, 1));
  for (std::size_t i = 1; i < wanted; ++i) {
    try {
      others.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // the system gives no more threads: those there are do the work
    }
  }
  run();
}

}  // namespace runtime
