#include "ddp/distributed_sampler.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <zlib.h>

#include <fstream>
#include <set>
#include <sstream>

namespace ddp {
namespace {

// Each line of the data file was written by Python's torch.utils.data.DistributedSampler
// (tests/trainer/sampler_golden.py).
TEST(DistributedSampler, GivesPythonsIndices) {
  std::ifstream file(TEST_DATA_DIR "/distributed_sampler.txt");
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream in(line);
    DistributedSampler sampler;
    int64_t count = 0;
    unsigned long crc = 0;
    in >> sampler.size >> sampler.world_size >> sampler.rank >> sampler.shuffle >> sampler.seed >>
        sampler.epoch >> sampler.drop_last >> count >> crc;
    const auto indices = sampler.Indices();
    ASSERT_EQ(sampler.SamplesPerRank(), count) << line;
    ASSERT_EQ(indices.size(0), count) << line;
    const auto* data = indices.data_ptr<int64_t>();
    int64_t expected = 0;
    for (int64_t i = 0; in >> expected; ++i) ASSERT_EQ(data[i], expected) << line;
    ASSERT_EQ(crc32(0, reinterpret_cast<const Bytef*>(data), static_cast<uInt>(8 * count)), crc)
        << line;
    ++cases;
  }
  EXPECT_GT(cases, 500);
}

TEST(DistributedSampler, OwnSamplesCoverTheSetOnce) {
  for (int64_t size : {1, 5, 10, 100, 101}) {
    for (int world : {1, 2, 3, 8}) {
      std::multiset<int64_t> seen;
      for (int rank = 0; rank < world; ++rank) {
        DistributedSampler sampler{.size = size, .world_size = world, .rank = rank};
        const auto indices = sampler.Indices();
        for (int64_t i = 0; i < sampler.OwnSamples(); ++i) {
          seen.insert(indices[i].item<int64_t>());
        }
      }
      ASSERT_EQ(seen.size(), static_cast<size_t>(size)) << size << " over " << world;
      ASSERT_EQ(*seen.rbegin(), size - 1);
      ASSERT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), seen.size());
    }
  }
}

}  // namespace
}  // namespace ddp
