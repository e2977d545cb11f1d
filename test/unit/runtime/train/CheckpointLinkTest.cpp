// A step folder that is a symbolic link to a checkpoint elsewhere.

#include "base/Error.h"
#include "runtime/train/CheckpointFolder.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

void makeCheckpoint(const std::string &folder) {
  fs::create_directories(folder);
  std::ofstream(folder + "/" + CheckpointManifest::kName) << "a manifest";
  std::ofstream(folder + "/model.safetensors") << "weights";
}

} // namespace

TEST(CheckpointLink, StaysWithItsTarget) {
  TemporaryFile file{"x"};
  const std::string other = file.folder + "/other", step = file.folder + "/saves/step-0000000",
                    why = "': it is a symbolic link, and the checkpoint that it leads to may be "
                          "another run's; both are as they were: "
                          "remove the link, or move it elsewhere";
  makeCheckpoint(other + "/step-00000001");
  fs::create_directories(other + "/empty");
  makeCheckpoint(step + "2");
  makeCheckpoint(step + "3");
  fs::create_directory_symlink("../other/step-00000001", step + "1");
  fs::create_directory_symlink("../other/empty", step + "7");
  Program program{};
  program.name = "test";
  const CheckpointLayout layout(program);
  CheckpointRoot root(FileSystem::real(), file.folder + "/saves");
  EXPECT_EQ(messageOf([&] { root.prune(3, 1); }), "cannot remove '" + step + "1" + why);
  EXPECT_EQ(messageOf([&] { root.begin(1, layout); }), "cannot remove '" + step + "1" + why);
  EXPECT_EQ(messageOf([&] { root.begin(7, layout); }), "cannot remove '" + step + "7" + why);
  root.discard(7);
  EXPECT_TRUE(fs::is_symlink(step + "1") && fs::is_symlink(step + "7") &&
              fs::exists(other + "/empty"));
  EXPECT_TRUE(fs::exists(other + "/step-00000001/model.safetensors") &&
              fs::exists(other + "/step-00000001/manifest.json"));
  EXPECT_FALSE(fs::exists(step + "2")); // one that stays does not keep others
  EXPECT_TRUE(fs::exists(step + "3"));
  fs::remove_all(file.folder);
}
