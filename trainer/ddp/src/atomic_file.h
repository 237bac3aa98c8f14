#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "ddp/result.h"

namespace ddp {

// A file that appears whole or not at all: written under a temporary name in its directory, flushed
// to the disk and renamed by Commit. Without Commit the temporary file is removed.
class AtomicFile {
 public:
  AtomicFile() = default;
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Result<void> Open(const std::filesystem::path& path);
  bool Write(const void* data, size_t size);  // false: see Commit's error
  Result<void> Commit();
  bool ok() const { return failure_.empty(); }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  std::string failure_;
};

}  // namespace ddp
