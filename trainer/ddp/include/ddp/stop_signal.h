#pragma once

#include <atomic>
#include <thread>

namespace ddp {

// Turns SIGTERM and SIGINT into a request that the training loop looks at. A second one ends the
// process at once with 128 + its number, so does the first one while `immediate` is on, which suits
// phases that have nothing to save.
//
// Make it in main before any other thread exists: it blocks the signals for this thread and for
// those started later, and receives them in a thread of its own, so nothing runs in a signal
// handler.
class StopSignal {
 public:
  explicit StopSignal(bool immediate);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return signal_.load() != 0; }
  int signal() const { return signal_.load(); }  // its number, 0 = none yet
  void set_immediate(bool immediate) { immediate_.store(immediate); }

 private:
  void Listen(const std::stop_token& stop);

  std::atomic<int> signal_{0};
  std::atomic<bool> immediate_;
  int wake_fd_ = -1;  // ends the thread
  std::jthread thread_;
};

// Undoes the blocking in a child process, before it runs another program.
void UnblockStopSignals();

}  // namespace ddp
