#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ddp/result.h"

namespace mnist {

// An IDX file of unsigned bytes: the format of the MNIST data sets.
struct IdxFile {
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;  // row-major, as many as the product of dims
};

// Reads `path`, raw or gzipped (told apart by content). The errors say what is wrong with the file.
ddp::Result<IdxFile> ReadIdx(const std::filesystem::path& path);

// The same for a file's content, already inflated. `name` is for the errors.
ddp::Result<IdxFile> ParseIdx(const std::vector<uint8_t>& bytes, const std::string& name);

}  // namespace mnist
