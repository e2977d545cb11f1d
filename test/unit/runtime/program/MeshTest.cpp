#include "runtime/program/Mesh.h"
#include "base/Error.h"

#include <gtest/gtest.h>

using namespace base;
using namespace fsdp::rt;

namespace {

using Ranks = std::vector<int>;

std::string refusal(Table<MeshAxis> axes, Table<int> order = {}) {
  try {
    Mesh mesh(axes, order);
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

TEST(Mesh, PartsOfAnAxisAreShownAsOne) {
  const MeshAxis axes[] = {
      {"data", 2}, {"tensor:(1)2", 2}, {"tensor:(2)3", 3}, {"fsdp:(1)2", 2}, {"fsdp:(2)2", 2}};
  EXPECT_EQ(Mesh(Table<MeshAxis>(axes)).describe(), "data=2,tensor=6,fsdp=4");
}

TEST(Mesh, RanksAreRowMajor) {
  const MeshAxis axes[] = {{"data", 2}, {"fsdp", 3}, {"tensor", 2}};
  Mesh mesh((Table<MeshAxis>(axes)));
  EXPECT_EQ(mesh.size(), 12);
  EXPECT_EQ(mesh.describe(), "data=2,fsdp=3,tensor=2");
  EXPECT_EQ(mesh.coordinates(0), (Ranks{0, 0, 0}));
  EXPECT_EQ(mesh.coordinates(7), (Ranks{1, 0, 1}));
  EXPECT_EQ(mesh.coordinates(10), (Ranks{1, 2, 0}));
  for (int rank = 0; rank < mesh.size(); ++rank)
    EXPECT_EQ(mesh.rankAt(mesh.coordinates(rank)), rank);
  EXPECT_EQ(mesh.axisNamed("tensor"), 2);
  EXPECT_EQ(mesh.axisNamed("pipeline"), -1);
}

TEST(Mesh, GroupsDifferOnTheirAxesOnly) {
  const MeshAxis axes[] = {{"data", 2}, {"fsdp", 3}, {"tensor", 2}};
  Mesh mesh((Table<MeshAxis>(axes)));
  EXPECT_EQ(mesh.group(7, {1}), (Ranks{7, 9, 11}));
  EXPECT_EQ(mesh.group(7, {0, 2}), (Ranks{0, 1, 6, 7}));
  EXPECT_EQ(mesh.group(7, {2, 0}), (Ranks{0, 6, 1, 7})) << "major to minor, as listed";
  EXPECT_EQ(mesh.group(7, {}), (Ranks{7}));
  EXPECT_EQ(mesh.group(5, {0, 1, 2}).size(), 12u);
}

TEST(Mesh, TransfersAreOfASenderAndAReceiver) {
  const MeshAxis axes[] = {{"pipeline", 3}, {"fsdp", 2}};
  Mesh mesh((Table<MeshAxis>(axes)));
  const CommunicatorSpec specs[] = {
      {"all", {0}},
      {"up", {0}, 1, false, true},
      {"up ring", {0}, 1, true, true},
      {"from below", {0}, -1, false, false},
      {"from below, ring", {0}, -1, true, false},
      {"down ring", {0}, -1, true, true},
      {"others", {1}, -1, true, true},
  };
  EXPECT_EQ(mesh.ranksOf(specs[0], 3), (Ranks{1, 3, 5}));
  EXPECT_EQ(mesh.ranksOf(specs[1], 3), (Ranks{3, 5})) << "the sender first";
  EXPECT_EQ(mesh.ranksOf(specs[1], 5), (Ranks{5})) << "no rank follows the last one";
  EXPECT_EQ(mesh.ranksOf(specs[2], 5), (Ranks{5, 1}));
  EXPECT_EQ(mesh.ranksOf(specs[3], 3), (Ranks{1, 3}));
  EXPECT_EQ(mesh.ranksOf(specs[3], 1), (Ranks{1}));
  EXPECT_EQ(mesh.ranksOf(specs[4], 1), (Ranks{5, 1}));
  EXPECT_EQ(mesh.ranksOf(specs[5], 1), (Ranks{1, 5}));
  EXPECT_EQ(counterpartOf(specs, 1), 3);
  EXPECT_EQ(counterpartOf(specs, 3), 1);
  EXPECT_EQ(counterpartOf(specs, 2), 4);
  EXPECT_EQ(counterpartOf(specs, 4), 2);
  const auto refuses = [&](int index) {
    try {
      counterpartOf(specs, index);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refuses(5), "communicator 'down ring' sends to the rank at offset -1, expected another "
                        "communicator of the program that receives");
}

TEST(Mesh, DeviceOrderPlacesRanks) {
  const MeshAxis axes[] = {{"data", 2}, {"fsdp", 2}};
  const int order[] = {2, 0, 3, 1};
  Mesh mesh(axes, order);
  EXPECT_EQ(mesh.rankAt({0, 0}), 2);
  EXPECT_EQ(mesh.coordinates(1), (Ranks{1, 1}));
  EXPECT_EQ(mesh.group(0, {1}), (Ranks{2, 0}));
  EXPECT_EQ(mesh.group(0, {0}), (Ranks{0, 1}));
}

TEST(Mesh, RefusesInvalidMeshes) {
  const MeshAxis empty[] = {{"fsdp", 0}}, twice[] = {{"a", 2}, {"a", 2}}, pair[] = {{"a", 2}};
  const int shortOrder[] = {0}, repeated[] = {1, 1};
  EXPECT_EQ(refusal(empty), "mesh axis 'fsdp' got size 0, expected at least 1");
  EXPECT_EQ(refusal(twice), "mesh axis 'a' is named twice, expected distinct names");
  EXPECT_EQ(refusal(pair, shortOrder), "device order got 1 ranks, expected 2");
  EXPECT_EQ(refusal(pair, repeated),
            "device order got rank 1 at position 1, expected each of 0..1 once");
}

TEST(Mesh, RefusesAGroupOfUnknownAxes) {
  const MeshAxis axes[] = {{"a", 2}};
  Mesh mesh((Table<MeshAxis>(axes)));
  for (AxisList list : {AxisList{1}, AxisList{0, 0}})
    try {
      mesh.group(0, list);
      FAIL();
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(),
                   list.count == 1
                       ? "communicator got axis 1, expected distinct axes of the mesh 'a=2'"
                       : "communicator got axis 0, expected distinct axes of the mesh 'a=2'");
    }
}

} // namespace
