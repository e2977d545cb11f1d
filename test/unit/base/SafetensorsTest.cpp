#include "base/Safetensors.h"
#include "base/Error.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <dirent.h>
#include <limits>

using namespace base;
using namespace fsdp::rt;

namespace {

const std::string kGood = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                          R"("b":{"dtype":"I64","shape":[1],"data_offsets":[16,24]},)"
                          R"("__metadata__":{"format":"pt"}})";
const std::string kData = bytesOf({1.0f, -2.5f, 3.0f, 4.0f}) + bytesOf({std::int64_t(7)});

/// A reader's message about a file with these bytes.
std::string complaint(const std::string &bytes) {
  TemporaryFile file;
  file.write(bytes);
  return messageOf([&] { SafetensorsFile reader(file.path); });
}

/// That the reader refuses such a file, naming it and saying `why`.
void refused(const std::string &bytes, const std::string &why) {
  const std::string message = complaint(bytes);
  EXPECT_NE(message.find(why), std::string::npos) << message;
  EXPECT_NE(message.find("/file'"), std::string::npos) << message;
}

TEST(SafetensorsTest, ReadsNamedTensors) {
  TemporaryFile file;
  file.write(safetensors(kGood, kData));
  SafetensorsFile reader(file.path);
  const FileTensor *a = reader.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (std::vector<std::int64_t>{2, 2}));
  float values[2];
  a->readFloats(1, 2, values);
  EXPECT_EQ(values[0], -2.5f);
  EXPECT_EQ(values[1], 3.0f);
  std::int32_t seven = 0;
  reader.find("b")->readIntegers(0, 1, &seven);
  EXPECT_EQ(seven, 7);
  EXPECT_EQ(reader.find("c"), nullptr);
  EXPECT_EQ(reader.tensors().size(), 2u);
}

TEST(SafetensorsTest, ConvertsEveryFloat) {
  TemporaryFile file;
  file.write(
      safetensors(R"({"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
                  R"("h":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}})",
                  bytesOf({1.5, -0.1}) + bytesOf({std::uint16_t(0x3fc0), std::uint16_t(0xc000)})));
  SafetensorsFile reader(file.path);
  float values[2];
  reader.find("d")->readFloats(0, 2, values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -0.1f);
  reader.find("h")->readFloats(0, 2, values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -2.0f);
}

TEST(SafetensorsTest, FindsTheFirstNonfinite) {
  std::vector<float> values(3000, 1.0f);
  const auto first = [&] {
    return FileTensor{"x", "F32", {3000}, reinterpret_cast<const char *>(values.data()), 12000}
        .firstNonfinite();
  };
  EXPECT_EQ(first(), 3000u);
  values[2999] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(first(), 2999u);
  values[1500] = std::nanf("");
  EXPECT_EQ(first(), 1500u);
  values[0] = std::numeric_limits<float>::max();
  EXPECT_EQ(first(), 1500u);
}

TEST(SafetensorsTest, RefusesIncompleteFiles) {
  EXPECT_EQ(complaint(safetensors(kGood, kData)), "no error");
  refused("abc", "is not a complete safetensors file: got 3 bytes, expected at least 8");
  refused(safetensors(kGood, kData.substr(0, 20)),
          "is cut off: got 20 bytes of data, expected at least 24");
  refused(safetensors(kGood, kData + "x"), "got 25 bytes of data, expected 24");
  refused(safetensors(kGood, kData).substr(0, 40),
          "got a header of 143 bytes, expected at most 32");
  refused(std::string(8, '\xff') + kGood, "got a header of 18446744073709551615 bytes");
  refused(safetensors("{", kData), "its header is not a JSON object");
  refused(safetensors("[]", ""), "its header is not a JSON object");
  const std::string deep(1'000'000, '[');
  refused(safetensors("{\"a\":" + deep + "}", ""), "its header is nested deeper than 8 levels");
  // Brackets in a name are no depth, and what a backslash hides is no end of it.
  refused(safetensors("{\"\\\"" + deep + "\": 3}", ""), "' has no 'dtype'");
}

TEST(SafetensorsTest, RefusesHeadersThatLie) {
  const auto one = [](const std::string &tensor) { return "{\"a\":" + tensor + "}"; };
  const std::string four(4, '\0'), eight(8, '\0');
  refused(safetensors(one("3"), ""), "tensor 'a' has no 'dtype'");
  refused(safetensors(one(R"({"dtype":"F33","shape":[],"data_offsets":[0,4]})"), four),
          "has dtype 'F33'");
  refused(safetensors(one(R"({"dtype":"F32","data_offsets":[0,4]})"), four), "has no 'shape'");
  refused(safetensors(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), four),
          "not a list of extents");
  refused(safetensors(one(R"({"dtype":"F32","shape":[1]})"), four), "has no 'data_offsets'");
  refused(safetensors(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), four),
          "got bytes [4, 0), expected 4 bytes for F32 [1]");
  refused(safetensors(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), four),
          "got bytes [0, 4), expected 8 bytes for F32 [2]");
  refused(safetensors(
              one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"), ""),
          "more elements than a file can hold");
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refused(safetensors("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", eight),
          "it overlaps the one before");
  refused(safetensors("{" + a + R"(,"b":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})", eight),
          "there is a gap");
  refused(safetensors("{" + a + "," + a + "}", four), "its header names 'a' twice");
}

TEST(SafetensorsTest, RefusesUnreadableFiles) {
  EXPECT_NE(
      messageOf([] { SafetensorsFile reader("/nowhere/x"); }).find("cannot open '/nowhere/x'"),
      std::string::npos);
  EXPECT_NE(messageOf([] { SafetensorsFile reader("/tmp"); }).find("expected a regular file"),
            std::string::npos);
}

TEST(SafetensorsTest, ReadsBackItsOutput) {
  TemporaryFile file;
  const float values[] = {1, 2, 3, 4, 5, 6, 7};
  {
    SafetensorsWriter writer(file.path, {{"first", {2, 3}}, {"second", {}}});
    writer.write(values, 4);
    writer.write(values + 4, 3);
    writer.commit();
  }
  SafetensorsFile reader(file.path);
  EXPECT_EQ(reader.find("first")->shape, (std::vector<std::int64_t>{2, 3}));
  float last;
  reader.find("second")->readFloats(0, 1, &last);
  EXPECT_EQ(last, 7);
  std::uint64_t header;
  std::memcpy(&header, file.read().data(), 8);
  EXPECT_EQ(header % 8, 0u);
}

TEST(SafetensorsTest, KeepsThePreviousFileUntilItCommits) {
  TemporaryFile file;
  file.write("old");
  const float value = 1;
  {
    SafetensorsWriter writer(file.path, {{"x", {1}}});
    writer.write(&value, 1);
    EXPECT_EQ(file.read(), "old");
  }
  EXPECT_EQ(file.read(), "old");
  {
    SafetensorsWriter writer(file.path, {{"x", {2}}});
    writer.write(&value, 1);
    EXPECT_EQ(messageOf([&] { writer.commit(); }), "1 declared elements were never written");
    EXPECT_EQ(messageOf([&] { writer.write(&value, 2); }), "more elements written than declared");
  }
  EXPECT_EQ(file.read(), "old");
  int entries = 0;
  DIR *folder = opendir(file.folder.c_str());
  while (readdir(folder))
    ++entries;
  closedir(folder);
  EXPECT_EQ(entries, 3) << "something besides '.', '..' and the file is left";
}

TEST(SafetensorsTest, ReportsWhyItCannotWrite) {
  EXPECT_NE(messageOf([] { AtomicFile file("/nowhere/x"); }).find("cannot create '/nowhere/x'"),
            std::string::npos);
  EXPECT_NE(messageOf([] { AtomicFile file("/tmp"); }).find("it is a folder"), std::string::npos);
}

} // namespace
