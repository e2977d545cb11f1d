#include "tools/fsdpc-log/TensorBoard.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdpc_log;

namespace {

std::string hex(const std::string &bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(TensorBoardTest, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

// Bytes that the package tensorboard 2.21 writes for the same events.
TEST(TensorBoardTest, BytesAreThoseOfTensorBoard) {
  EXPECT_EQ(hex(versionEvent(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
  const std::string event = scalarEvent(1.5, 300, {{"loss", 0.5}, {"lr", INFINITY}});
  EXPECT_EQ(hex(event),
            "09000000000000f83f10ac022a180a0b0a046c6f7373150000003f0a090a026c72150000807f");
  EXPECT_EQ(hex(tfRecord(event)), "2600000000000000734fe300"
                                  "09000000000000f83f10ac022a180a0b0a046c6f7373150000003f0a090a026c"
                                  "72150000807f"
                                  "74bf814f");
}

TEST(TensorBoardTest, RunsAreNamedAsTheirFiles) {
  EXPECT_EQ(namesOf({"runs/a.jsonl", "b.jsonl"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(namesOf({"x/a.jsonl", "y/a.jsonl"}),
            (std::vector<std::string>{"x_a.jsonl", "y_a.jsonl"}));
}

} // namespace
