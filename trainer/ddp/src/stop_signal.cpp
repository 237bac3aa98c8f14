#include "ddp/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace ddp {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignal::StopSignal(bool immediate) : immediate_(immediate), wake_fd_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::jthread([this](const std::stop_token& stop) { Listen(stop); });
}

StopSignal::~StopSignal() {
  thread_.request_stop();
  const uint64_t one = 1;
  [[maybe_unused]] auto written = write(wake_fd_, &one, sizeof(one));
  thread_.join();
  close(wake_fd_);
}

void StopSignal::Listen(const std::stop_token& stop) {
  const sigset_t set = StopSignals();
  const int fd = signalfd(-1, &set, SFD_CLOEXEC);
  pollfd waiting[2] = {{fd, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  while (!stop.stop_requested()) {
    if (poll(waiting, 2, -1) < 0 || (waiting[0].revents & POLLIN) == 0) continue;
    signalfd_siginfo info{};
    if (read(fd, &info, sizeof(info)) != sizeof(info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (signal_.exchange(number) != 0 || immediate_.load()) _exit(128 + number);
  }
  close(fd);
}

void UnblockStopSignals() {
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace ddp
