//===- Utf8Test.cpp - characters, and bytes that are none -----------------===//

#include "base/Utf8.h"

#include <gtest/gtest.h>

using namespace base;

namespace {

const std::string kMark(kReplacementCharacter);

TEST(Utf8Test, EveryCharacterIsReadAsItIsWritten) {
  for (char32_t value = 0; value <= 0x10ffff; ++value) {
    if (value >= 0xd800 && value <= 0xdfff)
      continue;
    std::string text;
    appendCharacter(text, value);
    const Character read = characterAt(text, 0);
    ASSERT_TRUE(read.valid && read.value == value && read.bytes == text.size()) << value;
    // Without its last byte it is the beginning of a character.
    if (text.size() == 1)
      continue;
    const Character cut = characterAt(std::string_view(text).substr(0, text.size() - 1), 0);
    ASSERT_TRUE(!cut.valid && cut.truncated && cut.bytes == text.size() - 1) << value;
  }
}

TEST(Utf8Test, InvalidBytesAreFound) {
  EXPECT_EQ(findInvalid(""), std::string::npos);
  EXPECT_EQ(findInvalid("plain text and an \xc3\xa9"), std::string::npos);
  EXPECT_EQ(findInvalid("sixteen bytes ab\xff"), 16u);
  for (const char *bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(findInvalid(std::string("ab") + bad), 2u) << testing::PrintToString(bad);
}

/// As Unicode recommends (3.9, table 3-8), and Python and Rust do.
TEST(Utf8Test, OneMarkReplacesEachMaximalPart) {
  EXPECT_EQ(replaceInvalid("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"),
            "a" + kMark + kMark + kMark + "b" + kMark + "c" + kMark + kMark + "d");
  EXPECT_EQ(replaceInvalid("\xed\xa0\x80"), kMark + kMark + kMark);
  EXPECT_EQ(replaceInvalid("\xf0\x9f\x98"), kMark);
  EXPECT_EQ(replaceInvalid("x\xe2\x82 y"), "x" + kMark + " y");
}

} // namespace
