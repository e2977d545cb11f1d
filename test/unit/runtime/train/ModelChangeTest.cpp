//===- ModelChangeTest.cpp - digests of models, one against another -------===//

#include "runtime/train/ModelChange.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

namespace {

ModelChange changeOf(const char *program, const char *checkpoint) {
  Program own{};
  own.modelDigest = program;
  CheckpointManifest manifest;
  manifest.modelDigest = checkpoint;
  return modelChange(own, manifest, "runs/a");
}

TEST(ModelChangeTest, OneDigestOrNoneIsNoChange) {
  EXPECT_EQ(changeOf("v1:9d2f0c1e8a7b6543", "v1:9d2f0c1e8a7b6543").difference, "");
  EXPECT_EQ(changeOf("", "").difference, "");
}

TEST(ModelChangeTest, AnotherDigestOfTheSameVersionIsAnotherModel) {
  const ModelChange change = changeOf("v1:9d2f0c1e8a7b6543", "v1:0000000000000000");
  EXPECT_TRUE(change.isKnown);
  EXPECT_EQ(change.difference,
            "'runs/a' is of another model: got the digest 'v1:0000000000000000', "
            "expected 'v1:9d2f0c1e8a7b6543' as this "
            "program has: its parameters have the same names and shapes, but what the "
            "model computes with them "
            "differs (heads, constants, activations)");
}

TEST(ModelChangeTest, IncomparableModelsAreUnknown) {
  const ModelChange without = changeOf("v1:9d2f0c1e8a7b6543", ""),
                    handWritten = changeOf("", "v1:9d2f0c1e8a7b6543"),
                    other = changeOf("v10:9d2f0c1e8a7b6543", "v1:9d2f0c1e8a7b6543");
  EXPECT_FALSE(without.isKnown || handWritten.isKnown || other.isKnown);
  EXPECT_EQ(without.difference, "'runs/a' has no digest of its model, and this program has "
                                "'v1:9d2f0c1e8a7b6543': whether they are of one "
                                "model is not checked");
  EXPECT_EQ(handWritten.difference,
            "'runs/a' has the digest 'v1:9d2f0c1e8a7b6543' of its model, and "
            "this program has none: whether they are "
            "of one model is not checked");
  EXPECT_EQ(other.difference,
            "'runs/a' has the digest 'v1:9d2f0c1e8a7b6543' of its model, and this "
            "program has 'v10:9d2f0c1e8a7b6543', of "
            "another version: whether they are of one model is not checked");
}

} // namespace
