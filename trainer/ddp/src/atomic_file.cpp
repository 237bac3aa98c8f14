#include "atomic_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ddp/checkpoint.h"

namespace ddp {
namespace {

std::string Problem(const char* action, const std::filesystem::path& path) {
  return std::string("cannot ") + action + " " + path.string() + ": " + std::strerror(errno);
}

}  // namespace

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Result<void> AtomicFile::Open(const std::filesystem::path& path) {
  path_ = path;
  temporary_ = path;
  temporary_ += ".tmp." + std::to_string(getpid());
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) return Error{ErrorKind::kIo, Problem("write", path_)};
  return {};
}

bool AtomicFile::Write(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0 && ok()) {
    const ssize_t written = write(fd_, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failure_ = Problem("write", path_);
      break;
    }
    at += written;
    size -= static_cast<size_t>(written);
  }
  return ok();
}

Result<void> AtomicFile::Commit() {
  if (ok() && fsync(fd_) != 0) failure_ = Problem("write", path_);
  if (ok() && rename(temporary_.c_str(), path_.c_str()) != 0) failure_ = Problem("rename", path_);
  if (!ok()) return Error{ErrorKind::kIo, failure_};
  close(fd_);
  fd_ = -1;
  // Makes the new name itself durable.
  auto directory = path_.parent_path();
  if (directory.empty()) directory = ".";
  if (const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    fsync(fd);
    close(fd);
  }
  return {};
}

Result<void> CheckWritable(const std::filesystem::path& path, uint64_t bytes) {
  AtomicFile file;
  if (auto opened = file.Open(path); !opened) return opened;
  auto directory = path.parent_path();
  if (directory.empty()) directory = ".";
  struct statvfs disk {};
  if (statvfs(directory.c_str(), &disk) != 0) return {};
  const uint64_t free_bytes = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free_bytes < bytes) {
    return Error{ErrorKind::kIo, "not enough room for " + path.string() + ": " +
                                     std::to_string(bytes >> 10) + " KiB are needed, " +
                                     std::to_string(free_bytes >> 10) + " KiB are free"};
  }
  return {};
}

}  // namespace ddp
