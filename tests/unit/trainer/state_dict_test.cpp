#include "ddp/state_dict.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "mnist/nets.h"
#include "temporary_directory.h"

namespace ddp {
namespace {

using ::testing::HasSubstr;
using trainer_test::ReadFile;
using trainer_test::TemporaryDirectory;
using trainer_test::WriteFile;

NamedTensors Sample() {
  return {{"conv.weight", torch::arange(24, torch::kFloat).view({2, 3, 2, 2})},
          {"steps", torch::tensor({int64_t{7}, int64_t{-1}})},
          {"half", torch::tensor({1.5, 2.5}).to(torch::kBFloat16)},
          {"scalar", torch::tensor(3.25, torch::kDouble)},
          {"bytes", torch::arange(5).to(torch::kByte)},
          {"empty", torch::empty({0, 4})}};
}

TEST(StateDict, RoundTripKeepsNamesOrderTypesAndBits) {
  TemporaryDirectory directory;
  auto tensors = Sample();
  tensors[0].second = tensors[0].second.contiguous(torch::MemoryFormat::ChannelsLast);
  ASSERT_TRUE(SaveStateDict(tensors, directory / "m.pt").ok());
  auto read = LoadStateDict(directory / "m.pt");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ((*read)[i].first, tensors[i].first);
    EXPECT_EQ((*read)[i].second.scalar_type(), tensors[i].second.scalar_type());
    EXPECT_TRUE(torch::equal((*read)[i].second, tensors[i].second)) << tensors[i].first;
  }
}

// data/python_state_dict.pt was written by Python: tests/trainer/state_dict_golden.py.
TEST(StateDict, ReadsPythonsFileWithViewsAndSharedStorage) {
  auto read = LoadStateDict(TEST_DATA_DIR "/python_state_dict.pt");
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::map<std::string, torch::Tensor> by_name(read->begin(), read->end());
  EXPECT_TRUE(torch::equal(by_name.at("weight"), torch::arange(6, torch::kFloat).view({2, 3})));
  EXPECT_TRUE(
      torch::equal(by_name.at("transposed"), torch::arange(6, torch::kFloat).view({2, 3}).t()));
  EXPECT_TRUE(torch::equal(by_name.at("tail"), torch::tensor({4.f, 5.f})));
  EXPECT_TRUE(torch::equal(by_name.at("running.num_batches_tracked"), torch::tensor(int64_t{12})));
}

TEST(StateDict, DropsTheModulePrefixOfDataParallel) {
  TemporaryDirectory directory;
  ASSERT_TRUE(SaveStateDict({{"module.a", torch::ones({1})}, {"module.b", torch::ones({1})}},
                            directory / "m.pt")
                  .ok());
  EXPECT_EQ((*LoadStateDict(directory / "m.pt"))[1].first, "b");
  ASSERT_TRUE(
      SaveStateDict({{"module.a", torch::ones({1})}, {"b", torch::ones({1})}}, directory / "m.pt")
          .ok());
  EXPECT_EQ((*LoadStateDict(directory / "m.pt"))[0].first, "module.a");
}

TEST(StateDict, LeavesNoTemporaryFileAndReplacesTheOldOne) {
  TemporaryDirectory directory;
  WriteFile(directory / "m.pt", "old");
  ASSERT_TRUE(SaveStateDict(Sample(), directory / "m.pt").ok());
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1);
  EXPECT_TRUE(LoadStateDict(directory / "m.pt").ok());
}

TEST(StateDict, ErrorsNameTheFile) {
  TemporaryDirectory directory;
  auto unwritable = SaveStateDict(Sample(), directory / "no/such/m.pt");
  ASSERT_FALSE(unwritable.ok());
  EXPECT_THAT(unwritable.error().message, HasSubstr("no/such/m.pt: No such file or directory"));
  EXPECT_THAT(LoadStateDict(directory / "absent").error().message,
              HasSubstr("absent is not there"));
  WriteFile(directory / "text", "hello");
  EXPECT_THAT(LoadStateDict(directory / "text").error().message,
              HasSubstr("is damaged or no file of torch.save"));
}

TEST(StateDict, ATruncatedFileIsAnError) {
  TemporaryDirectory directory;
  ASSERT_TRUE(SaveStateDict(Sample(), directory / "m.pt").ok());
  const auto whole = ReadFile(directory / "m.pt");
  for (size_t size : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
    WriteFile(directory / "cut.pt", whole.substr(0, size));
    auto read = LoadStateDict(directory / "cut.pt");
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().kind, ErrorKind::kDamaged);
  }
}

TEST(StateDict, NamesOfTheNetsAreThoseOfThePythonExamples) {
  for (auto name : {mnist::NetName::kConv3x3, mnist::NetName::kConv5x5}) {
    std::vector<std::string> keys;
    int64_t count = 0;
    for (const auto& entry : mnist::MakeNet(name)->named_parameters()) {
      keys.push_back(entry.key());
      count += entry.value().numel();
    }
    EXPECT_EQ(keys,
              (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                        "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
    EXPECT_EQ(count, name == mnist::NetName::kConv3x3 ? 1'199'882 : 431'080);
  }
}

}  // namespace
}  // namespace ddp
