#include "ddp/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <vector>

#include "state_dict_bytes.h"

namespace ddp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".pt";
constexpr const char* kChecksum = "checkpoint.crc32";

int64_t Checksum(const NamedTensors& tensors) {
  uLong crc = crc32(0, nullptr, 0);
  for (const auto& [name, tensor] : tensors) {
    if (name == kChecksum) continue;
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(name.data()), name.size());
    const auto plain = tensor.detach().to(at::kCPU).contiguous();
    crc = crc32_z(crc, static_cast<const Bytef*>(plain.data_ptr()), plain.nbytes());
  }
  return static_cast<int64_t>(crc);
}

// -1 for another name.
int64_t StepOf(const fs::path& path) {
  const auto name = path.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return -1;
  const auto* from = name.data() + kPrefix.size();
  const auto* to = name.data() + name.size() - kSuffix.size();
  int64_t step = -1;
  const auto [end, error] = std::from_chars(from, to, step);
  return error == std::errc() && end == to ? step : -1;
}

// Newest first.
std::vector<fs::path> List(const fs::path& directory) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (StepOf(entry.path()) >= 0) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end(),
            [](const fs::path& a, const fs::path& b) { return StepOf(a) > StepOf(b); });
  return out;
}

}  // namespace

Result<CheckpointDirectory> CheckpointDirectory::Open(const fs::path& path, int keep) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return Error{ErrorKind::kIo,
                 "cannot make the checkpoint directory " + path.string() + ": " + error.message()};
  }
  if (auto writable = CheckWritable(path / "checkpoint", 0); !writable) return writable.error();
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.find(".pt.tmp.") != std::string::npos) {
      fs::remove(entry.path(), error);
    }
  }
  return CheckpointDirectory(path, keep);
}

Result<void> CheckpointDirectory::Write(int64_t step, const NamedTensors& tensors) const {
  auto all = tensors;
  all.emplace_back(kChecksum, at::tensor({Checksum(tensors)}, at::kLong));
  char name[64];
  std::snprintf(name, sizeof(name), "checkpoint-%010lld.pt", static_cast<long long>(step));
  if (auto saved = SaveStateDict(all, path_ / name); !saved) return saved;
  const auto files = List(path_);
  std::error_code ignored;  // an old file that stays does no harm
  for (size_t i = static_cast<size_t>(keep_); i < files.size(); ++i) fs::remove(files[i], ignored);
  return {};
}

std::optional<fs::path> CheckpointDirectory::Newest(
    const std::function<void(const std::string&)>& warn) const {
  for (const auto& path : List(path_)) {
    auto read = ReadCheckpoint(path);
    if (read) return path;
    warn("skipping the checkpoint " + path.string() + ": " + read.error().message);
  }
  return std::nullopt;
}

Result<NamedTensors> ReadCheckpoint(const fs::path& path) {
  auto tensors = LoadStateDict(path);
  if (!tensors) return tensors;
  const auto found = std::find_if(tensors->begin(), tensors->end(),
                                  [](const auto& entry) { return entry.first == kChecksum; });
  if (found == tensors->end() || found->second.numel() != 1) {
    return Error{ErrorKind::kDamaged, path.string() + " is no checkpoint: it has no checksum"};
  }
  const auto expected = found->second.item<int64_t>();
  tensors->erase(found);
  if (Checksum(*tensors) != expected) {
    return Error{ErrorKind::kDamaged, path.string() + " is damaged: its checksum is wrong"};
  }
  return tensors;
}

Result<NamedTensors> BroadcastTensors(Communicator& communicator, const NamedTensors& tensors) {
  if (communicator.world_size() == 1) return tensors;
  std::string bytes;
  if (communicator.rank() == 0) {
    auto packed = PackStateDict(tensors);
    if (!packed) return packed.error();
    bytes = std::move(*packed);
  }
  auto size = at::tensor({static_cast<int64_t>(bytes.size())}, at::kLong);
  if (auto sent = communicator.Broadcast(size, 0); !sent) return sent.error();
  auto buffer = at::empty({size.item<int64_t>()}, at::kByte);
  if (communicator.rank() == 0) std::memcpy(buffer.data_ptr(), bytes.data(), bytes.size());
  if (auto sent = communicator.Broadcast(buffer, 0); !sent) return sent.error();
  if (communicator.rank() == 0) return tensors;
  return UnpackStateDict({static_cast<const char*>(buffer.data_ptr()), buffer.nbytes()},
                         "what rank 0 sent");
}

Result<at::Tensor> GatherRows(Communicator& communicator, const at::Tensor& row) {
  auto rows = at::zeros({communicator.world_size(), row.numel()}, at::kByte);
  rows[communicator.rank()].copy_(row);
  // Bytes are unsigned and the other ranks hold zeros there, so the greatest is the row itself.
  if (auto done = communicator.AllReduce(rows, ReduceOp::kMax); !done) return done.error();
  return rows;
}

at::Tensor CpuRandomState() {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state().clone();
}

void SetCpuRandomState(const at::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state.contiguous().clone());
}

}  // namespace ddp
