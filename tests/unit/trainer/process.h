#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "temporary_directory.h"

namespace trainer_test {

using Variables = std::map<std::string, std::string>;

// Nothing in these tests may hang: a process that has not ended by then is killed, and the test
// fails on its exit code. Far above what a loaded machine needs.
inline constexpr auto kPatience = std::chrono::seconds(240);

// A program under test, with its output in files. Killed at the end if it still runs.
class Process {
 public:
  Process(const std::filesystem::path& directory, const std::string& name,
          const std::vector<std::string>& arguments, const Variables& variables)
      : out_(directory / (name + ".out")), err_(directory / (name + ".err")) {
    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::vector<std::string> environment;
    for (const char* kept : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}) {
      if (const char* value = std::getenv(kept))
        environment.push_back(std::string(kept) + "=" + value);
    }
    for (const auto& [key, value] : variables) environment.push_back(key + "=" + value);
    std::vector<char*> envp;
    for (auto& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data()) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (running_ && pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const { kill(pid_, number); }
  std::string out() const { return ReadFile(out_); }
  std::string err() const { return ReadFile(err_); }

  // Exit code, 1000 + number for a death by signal, -1 if patience ran out.
  int Wait() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (running_ && std::chrono::steady_clock::now() < deadline) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        running_ = false;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    return code_;
  }

  // False if the process ended or patience ran out before `done` held.
  bool WaitUntil(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (done()) return true;
      int status = 0;
      if (running_ && waitpid(pid_, &status, WNOHANG) == pid_) {
        running_ = false;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
      }
      if (!running_) return done();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
  bool running_ = true;
  int code_ = -1;
};

inline uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// The environment that the operator gives rank `rank`.
inline Variables RankVariables(int rank, int world_size, uint16_t port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"OMP_NUM_THREADS", "1"}};
}

}  // namespace trainer_test
