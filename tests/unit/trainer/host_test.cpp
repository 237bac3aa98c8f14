#include "ddp/host.h"

#include <gtest/gtest.h>

#include "temporary_directory.h"

namespace ddp {
namespace {

using trainer_test::TemporaryDirectory;
using trainer_test::WriteFile;

TEST(CgroupCpuQuota, ReadsVersion2) {
  TemporaryDirectory root;
  EXPECT_EQ(CgroupCpuQuota(root.path()), std::nullopt);
  WriteFile(root / "cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), std::nullopt);
  WriteFile(root / "cpu.max", "200000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2);
  WriteFile(root / "cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 1);
  WriteFile(root / "cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2);
}

TEST(CgroupCpuQuota, ReadsVersion1) {
  TemporaryDirectory root;
  WriteFile(root / "cpu/cpu.cfs_quota_us", "-1\n");
  WriteFile(root / "cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), std::nullopt);
  WriteFile(root / "cpu/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 4);
}

TEST(DefaultThreads, QuotaIsSharedByTheRanksOfAPod) {
  EXPECT_EQ(DefaultThreads(4, 16, 1, 3), 4);
  EXPECT_EQ(DefaultThreads(4, 16, 2, 4), 2);
  EXPECT_EQ(DefaultThreads(2, 16, 4, 4), 1);
  EXPECT_EQ(DefaultThreads(64, 8, 1, 2), 8) << "never more than there are";
}

TEST(DefaultThreads, WithoutQuotaOneEachInAJobAndAllWhenAlone) {
  EXPECT_EQ(DefaultThreads(std::nullopt, 8, 1, 3), 1);
  EXPECT_EQ(DefaultThreads(std::nullopt, 8, 1, 1), 8);
}

}  // namespace
}  // namespace ddp
