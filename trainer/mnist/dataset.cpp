#include "mnist/dataset.h"

#include <algorithm>

namespace mnist {
namespace {

namespace fs = std::filesystem;
using ddp::Error;
using ddp::ErrorKind;

fs::path FileIn(const fs::path& directory, const char* stem) {
  std::error_code none;
  for (const char* ending : {"", ".gz"}) {
    auto path = directory / (std::string(stem) + ending);
    if (fs::is_regular_file(path, none)) return path;
  }
  return {};
}

int FilesIn(const fs::path& directory) {
  return static_cast<int>(
      std::count_if(std::begin(kDataFiles), std::end(kDataFiles),
                    [&](auto stem) { return !FileIn(directory, stem).empty(); }));
}

std::vector<fs::path> Candidates(const fs::path& root, DatasetName name) {
  return {root / TorchvisionFolder(name) / "raw", root / ToString(name), root};
}

std::string WhereToGetIt(DatasetName name) {
  return std::string("Get it with tools/datasets.sh, or let --download fetch ") + ToString(name);
}

ddp::Result<Split> LoadSplit(const fs::path& directory, const char* images_stem,
                             const char* labels_stem, DatasetName name) {
  const auto images_path = FileIn(directory, images_stem);
  const auto labels_path = FileIn(directory, labels_stem);
  auto damaged = [&](const std::string& what) {
    return Error{ErrorKind::kDamaged, what + ". " + WhereToGetIt(name) + " again"};
  };
  auto images = ReadIdx(images_path);
  if (!images) return damaged(images.error().message);
  auto labels = ReadIdx(labels_path);
  if (!labels) return damaged(labels.error().message);
  if (images->dims.size() != 3 || images->dims[1] != kImageSide || images->dims[2] != kImageSide) {
    return damaged(images_path.string() + " does not hold 28x28 images");
  }
  if (labels->dims.size() != 1) return damaged(labels_path.string() + " does not hold labels");
  if (images->dims[0] != labels->dims[0] || images->dims[0] == 0) {
    return damaged(images_path.string() + " holds " + std::to_string(images->dims[0]) +
                   " images, but " + labels_path.string() + " " + std::to_string(labels->dims[0]) +
                   " labels");
  }
  const auto wrong = std::find_if(labels->data.begin(), labels->data.end(),
                                  [](uint8_t label) { return label >= kClasses; });
  if (wrong != labels->data.end()) {
    return damaged(labels_path.string() + " holds the label " + std::to_string(*wrong) +
                   "; labels go from 0 to 9");
  }
  Split out;
  out.size = images->dims[0];
  out.images = std::move(images->data);
  out.labels = std::move(labels->data);
  return out;
}

}  // namespace

const char* ToString(DatasetName name) {
  return name == DatasetName::kMnist ? "mnist" : "fashion-mnist";
}

const char* TorchvisionFolder(DatasetName name) {
  return name == DatasetName::kMnist ? "MNIST" : "FashionMNIST";
}

std::vector<fs::path> DefaultDataDirectories(const ddp::GetEnv& get) {
  std::vector<fs::path> out;
  if (const char* path = get("MNIST_DATA"); path && *path) out.emplace_back(path);
  for (const char* path : {"./datasets", "../data", "/datasets"}) out.emplace_back(path);
  return out;
}

fs::path FindIn(const fs::path& root, DatasetName name) {
  for (const auto& directory : Candidates(root, name)) {
    if (FilesIn(directory) == 4) return directory;
  }
  return {};
}

ddp::Result<Dataset> LoadDataset(const std::vector<fs::path>& roots, DatasetName name) {
  std::string looked_at, incomplete;
  for (const auto& root : roots) {
    const auto directory = FindIn(root, name);
    if (directory.empty()) {
      looked_at += (looked_at.empty() ? "" : ", ") + root.string();
      for (const auto& candidate : Candidates(root, name)) {
        if (FilesIn(candidate) == 0 || !incomplete.empty()) continue;
        for (const char* stem : kDataFiles) {
          if (FileIn(candidate, stem).empty()) {
            incomplete += (incomplete.empty() ? candidate.string() + " lacks " : ", ") +
                          std::string(stem) + "[.gz]";
          }
        }
      }
      continue;
    }
    Dataset out;
    out.directory = directory;
    auto train = LoadSplit(directory, kDataFiles[0], kDataFiles[1], name);
    if (!train) return train.error();
    out.train = std::move(*train);
    auto test = LoadSplit(directory, kDataFiles[2], kDataFiles[3], name);
    if (!test) return test.error();
    out.test = std::move(*test);
    return out;
  }
  return Error{ErrorKind::kIo,
               std::string("the data set ") + ToString(name) + " is not in " + looked_at +
                   (incomplete.empty() ? "" : " (" + incomplete + ")") +
                   ". Give --data DIR, a directory of its four IDX files or torchvision's tree. " +
                   WhereToGetIt(name)};
}

}  // namespace mnist
