#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "temporary_directory.h"

namespace trainer_test {

inline std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string IdxHeader(const std::vector<uint32_t>& dims) {
  std::string out{0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t dim : dims) out += BigEndian(dim);
  return out;
}

// Images that a net can learn at once: each class lights a block of its own, under seeded noise.
inline std::string Images(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string out = IdxHeader({count, 28, 28});
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = i % 10;
    for (uint32_t row = 0; row < 28; ++row) {
      for (uint32_t column = 0; column < 28; ++column) {
        const bool lit = row / 6 == label / 3 && column / 9 == label % 3;
        out += static_cast<char>(random() % 64 + (lit ? 160 : 0));
      }
    }
  }
  return out;
}

inline std::string Labels(uint32_t count) {
  std::string out = IdxHeader({count});
  for (uint32_t i = 0; i < count; ++i) out += static_cast<char>(i % 10);
  return out;
}

inline void WriteGz(const std::filesystem::path& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

// The four files of a small set.
inline void WriteDataset(const std::filesystem::path& directory, uint32_t train = 640,
                         uint32_t test = 100) {
  WriteFile(directory / "train-images-idx3-ubyte", Images(train, 1));
  WriteFile(directory / "train-labels-idx1-ubyte", Labels(train));
  WriteFile(directory / "t10k-images-idx3-ubyte", Images(test, 2));
  WriteFile(directory / "t10k-labels-idx1-ubyte", Labels(test));
}

}  // namespace trainer_test
