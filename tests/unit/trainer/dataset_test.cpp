#include "mnist/dataset.h"

#include <gmock/gmock.h>

#include "synthetic_data.h"

namespace mnist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace trainer_test;

TEST(Dataset, LoadsAFlatDirectory) {
  TemporaryDirectory directory;
  WriteDataset(directory.path(), 30, 20);
  auto set = LoadDataset({directory.path()}, DatasetName::kMnist);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->train.size, 30);
  EXPECT_EQ(set->test.size, 20);
  EXPECT_EQ(set->train.images.size(), 30u * 784);
  EXPECT_EQ(set->train.labels[13], 3);
}

TEST(Dataset, TellsTheSetsApartInTorchvisionsTree) {
  TemporaryDirectory directory;
  WriteDataset(directory / "MNIST/raw", 30, 20);
  WriteDataset(directory / "FashionMNIST/raw", 50, 40);
  EXPECT_EQ(LoadDataset({directory.path()}, DatasetName::kMnist)->train.size, 30);
  EXPECT_EQ(LoadDataset({directory.path()}, DatasetName::kFashionMnist)->train.size, 50);
}

TEST(Dataset, TakesTheFirstDirectoryThatHoldsTheSet) {
  TemporaryDirectory directory;
  WriteDataset(directory / "second", 30, 20);
  WriteDataset(directory / "third", 50, 20);
  auto set = LoadDataset({directory / "first", directory / "second", directory / "third"},
                         DatasetName::kMnist);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->directory, directory / "second");
}

TEST(Dataset, MissingDataNamesEveryPlaceAndWhereToGetIt) {
  TemporaryDirectory directory;
  auto set = LoadDataset({directory / "a", directory / "b"}, DatasetName::kMnist);
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().kind, ddp::ErrorKind::kIo);
  EXPECT_THAT(set.error().message, AllOf(HasSubstr("mnist is not in " + (directory / "a").string() +
                                                   ", " + (directory / "b").string()),
                                         HasSubstr("--data DIR"), HasSubstr("--download")));
}

TEST(Dataset, AnIncompleteDirectoryNamesWhatItLacks) {
  TemporaryDirectory directory;
  WriteDataset(directory.path(), 30, 20);
  std::filesystem::remove(directory / "t10k-labels-idx1-ubyte");
  auto set = LoadDataset({directory.path()}, DatasetName::kMnist);
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, HasSubstr("lacks t10k-labels-idx1-ubyte[.gz]"));
}

TEST(Dataset, DamagedFilesAreNamed) {
  TemporaryDirectory directory;
  const auto images = directory / "train-images-idx3-ubyte";
  const auto labels = directory / "train-labels-idx1-ubyte";
  auto error = [&] {
    auto set = LoadDataset({directory.path()}, DatasetName::kMnist);
    return set ? std::string("no error") : set.error().message;
  };
  WriteDataset(directory.path(), 30, 20);
  WriteFile(images, Images(30, 1).substr(0, 5000));
  EXPECT_THAT(error(), AllOf(HasSubstr(images.string() + " is cut off"), HasSubstr("again")));

  WriteDataset(directory.path(), 30, 20);
  WriteFile(labels, Labels(29));
  EXPECT_THAT(error(), HasSubstr("holds 30 images, but " + labels.string() + " 29 labels"));

  WriteDataset(directory.path(), 30, 20);
  auto wrong = Labels(30);
  wrong.back() = 17;
  WriteFile(labels, wrong);
  EXPECT_THAT(error(), HasSubstr("holds the label 17; labels go from 0 to 9"));

  WriteDataset(directory.path(), 30, 20);
  WriteFile(images, IdxHeader({30, 32, 32}) + std::string(30 * 32 * 32, 'x'));
  EXPECT_THAT(error(), HasSubstr("does not hold 28x28 images"));
}

TEST(Dataset, SearchesFourPlacesByDefault) {
  auto without = DefaultDataDirectories([](const char*) { return nullptr; });
  EXPECT_EQ(without.size(), 3u);
  auto with = DefaultDataDirectories([](const char*) { return "/somewhere"; });
  EXPECT_EQ(with, (std::vector<std::filesystem::path>{"/somewhere", "./datasets", "../data",
                                                      "/datasets"}));
}

}  // namespace
}  // namespace mnist
