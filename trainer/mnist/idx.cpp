#include "mnist/idx.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

namespace mnist {
namespace {

using ddp::Error;
using ddp::ErrorKind;

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kUnsignedByte = 0x08;

struct GzClose {
  void operator()(gzFile file) const { gzclose(file); }
};

// zlib passes files that are not gzipped through as they are.
ddp::Result<std::vector<uint8_t>> ReadInflated(const std::filesystem::path& path) {
  errno = 0;
  std::unique_ptr<gzFile_s, GzClose> file(gzopen(path.c_str(), "rb"));
  if (!file) {
    return Error{ErrorKind::kIo, "cannot open " + path.string() + ": " + std::strerror(errno)};
  }
  std::vector<uint8_t> out;
  while (true) {
    const size_t filled = out.size();
    out.resize(filled + kChunk);
    const int got = gzread(file.get(), out.data() + filled, kChunk);
    if (got < 0) {
      int code = 0;
      const char* why = gzerror(file.get(), &code);
      if (code == Z_ERRNO) why = std::strerror(errno);
      return Error{ErrorKind::kDamaged, path.string() + " cannot be read: " + why};
    }
    out.resize(filled + static_cast<size_t>(got));
    if (got == 0) break;
  }
  int code = 0;
  gzerror(file.get(), &code);
  if (code == Z_BUF_ERROR) {
    return Error{ErrorKind::kDamaged, path.string() + " is cut off: its gzip stream has no end"};
  }
  return out;
}

int64_t BigEndian32(const uint8_t* bytes) {
  return static_cast<int64_t>(bytes[0]) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

}  // namespace

ddp::Result<IdxFile> ParseIdx(const std::vector<uint8_t>& bytes, const std::string& name) {
  auto damaged = [&](const std::string& what) {
    return Error{ErrorKind::kDamaged, name + " " + what};
  };
  if (bytes.size() < 4) {
    return damaged("is cut off: " + std::to_string(bytes.size()) + " bytes hold no IDX header");
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    char magic[16];
    std::snprintf(magic, sizeof(magic), "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
    return damaged(std::string("is no IDX file: it begins with 0x") + magic +
                   " instead of 0x0000 and a type");
  }
  if (bytes[2] != kUnsignedByte) {
    return damaged("holds numbers of IDX type " + std::to_string(bytes[2]) +
                   "; unsigned bytes (8) are expected");
  }
  const size_t dims = bytes[3];
  const size_t header = 4 + 4 * dims;
  if (dims == 0 || bytes.size() < header) return damaged("is cut off within its header");
  IdxFile out;
  int64_t count = 1;
  for (size_t i = 0; i < dims; ++i) {
    out.dims.push_back(BigEndian32(bytes.data() + 4 + 4 * i));
    if (out.dims.back() != 0 && count > std::numeric_limits<int64_t>::max() / out.dims.back()) {
      return damaged("claims more elements than can exist");
    }
    count *= out.dims.back();
  }
  const auto found = static_cast<int64_t>(bytes.size() - header);
  if (found != count) {
    return damaged((found < count ? "is cut off: " : "is too long: ") + std::to_string(found) +
                   " bytes of data where its header says " + std::to_string(count));
  }
  out.data.assign(bytes.begin() + static_cast<int64_t>(header), bytes.end());
  return out;
}

ddp::Result<IdxFile> ReadIdx(const std::filesystem::path& path) {
  auto bytes = ReadInflated(path);
  if (!bytes) return bytes.error();
  return ParseIdx(*bytes, path.string());
}

}  // namespace mnist
