#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ddp/environment.h"
#include "ddp/result.h"
#include "mnist/idx.h"

namespace mnist {

enum class DatasetName { kMnist, kFashionMnist };

const char* ToString(DatasetName name);           // "mnist", "fashion-mnist"
const char* TorchvisionFolder(DatasetName name);  // "MNIST", "FashionMNIST"

// The four files of a set, without ".gz": the order in which they are downloaded and announced.
inline constexpr const char* kDataFiles[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                             "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

inline constexpr int64_t kImageSide = 28;
inline constexpr int64_t kImageBytes = kImageSide * kImageSide;
inline constexpr int kClasses = 10;

struct Split {
  int64_t size = 0;
  std::vector<uint8_t> images;  // size x 28 x 28
  std::vector<uint8_t> labels;  // size, each below kClasses
};

struct Dataset {
  Split train;
  Split test;
  std::filesystem::path directory;  // where it was found
};

// The directories that are searched when --data is not given: $MNIST_DATA, ./datasets, ../data,
// /datasets.
std::vector<std::filesystem::path> DefaultDataDirectories(const ddp::GetEnv& get);

// The directory below `root` that holds all four files: root itself, torchvision's
// root/<MNIST|FashionMNIST>/raw, or root/<mnist|fashion-mnist>. Empty if there is none.
std::filesystem::path FindIn(const std::filesystem::path& root, DatasetName name);

// Loads the set from the first of `roots` that holds it. The error names every place looked at, or
// the damaged file.
ddp::Result<Dataset> LoadDataset(const std::vector<std::filesystem::path>& roots, DatasetName name);

}  // namespace mnist
