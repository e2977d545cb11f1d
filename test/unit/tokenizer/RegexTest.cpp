//===- RegexTest.cpp - expressions of Oniguruma ---------------------------===//

#include "tokenizer/Regex.h"
#include "test/unit/tokenizer/Message.h"

#include <gtest/gtest.h>
#include <vector>

using namespace tokenizer;

namespace {

/// The matches of `pattern` in `text`, in brackets.
std::string marked(const std::string &pattern, const std::string &text) {
  std::string result;
  std::size_t done = 0;
  Regex(pattern).forEachMatch(text, [&](std::size_t begin, std::size_t end) {
    result += text.substr(done, begin - done) + "[" + text.substr(begin, end - begin) + "]";
    done = end;
  });
  return result + text.substr(done);
}

TEST(RegexTest, SetsHaveTheMeaningOfUnicode) {
  // White_Space has U+0085 and U+3000, and not U+180E and U+200B.
  EXPECT_EQ(marked("\\s+", "a\t \xc2\x85\xe3\x80\x80"
                           "b\xe1\xa0\x8e"
                           "c\xe2\x80\x8b"
                           "d"),
            "a[\t \xc2\x85\xe3\x80\x80]b\xe1\xa0\x8e"
            "c\xe2\x80\x8b"
            "d");
  EXPECT_EQ(marked("\\S+", "a\xc2\xa0\xe1\xa0\x8e b"), "[a]\xc2\xa0[\xe1\xa0\x8e] [b]");
  EXPECT_EQ(marked("[^\\s\\d]+", "ab 12 c"), "[ab] 12 [c]");
  EXPECT_EQ(marked("[\\S]+", "ab cd"), "[ab] [cd]");
  EXPECT_EQ(marked("\\d", "1\xd9\xa3\xc2\xbd"), "[1][\xd9\xa3]\xc2\xbd");
  EXPECT_EQ(marked("\\D+", "1a2"), "1[a]2");
  EXPECT_EQ(marked("\\w+", "na\xc3\xafve_1-x"), "[na\xc3\xafve_1]-[x]");
  EXPECT_EQ(marked("\\W+", "a, b"), "a[, ]b");
  EXPECT_EQ(marked("\\w", "\xc2\xbd\xe2\x85\x93"), "[\xc2\xbd]\xe2\x85\x93"); // ½, not ⅓
  EXPECT_EQ(marked("[\\w]", "\xc2\xbd"), "\xc2\xbd");
  EXPECT_EQ(marked("\\p{Lu}\\P{Lu}", "aBcD"), "a[Bc]D");
  EXPECT_EQ(marked("[\\p{^L}]", "a1b"), "a[1]b");
  // The ideographic full stop is used with Han, and not of it.
  EXPECT_EQ(marked("\\p{Han}+", "\xe5\xa4\xa9\xe3\x80\x82"), "[\xe5\xa4\xa9]\xe3\x80\x82");
  EXPECT_EQ(marked("\\P{Han}|\\p{^Greek}", "\xe5\xa4\xa9\xce\xb1"), "[\xe5\xa4\xa9][\xce\xb1]");
  EXPECT_EQ(marked("[\\P{Han}]|\\P{^Han}", "\xe5\xa4\xa9z"), "[\xe5\xa4\xa9][z]");
  EXPECT_EQ(marked("(?i:k)", "kK\xe2\x84\xaa"), "[k][K][\xe2\x84\xaa]"); // Kelvin's sign
}

TEST(RegexTest, CharactersAndRepetitions) {
  EXPECT_EQ(marked("\\u00e9|\\x41|\\x{1f600}", "A\xc3\xa9\xf0\x9f\x98\x80"
                                               "B"),
            "[A][\xc3\xa9][\xf0\x9f\x98\x80]B");
  EXPECT_EQ(marked("a{2}", "aaaaa"), "[aa][aa]a");
  EXPECT_EQ(marked("a{2,}", "aaaaa"), "[aaaaa]");
  EXPECT_EQ(marked("a{1,2}?b", "aaab"), "a[aab]");
  EXPECT_EQ(marked("xa{,2}", "xaaa"), "[xaa]a");
  EXPECT_EQ(marked("{a}", "b{a}"), "b[{a}]");
  EXPECT_EQ(marked("\\v", "a\x0b\n"), "a[\x0b]\n");
  EXPECT_EQ(marked("a++a", "aaa"), "aaa");
  EXPECT_EQ(marked(".", "a\n"), "[a]\n");
  EXPECT_EQ(marked("[\\]\\-a]", "]-a"), "[]][-][a]");
}

TEST(RegexTest, MatchesAreFoundFromLeftToRight) {
  EXPECT_EQ(marked("\\s+(?!\\S)|\\s+", "a   b  "), "a[  ][ ]b[  ]");
  EXPECT_EQ(marked("(?<=a)b|(?<!a)c|d(?=e)|(?>f)", "abcbdef"), "a[b][c]b[d]e[f]");
  EXPECT_EQ(marked("x*", "axb"), "[]a[x]b[]");
  EXPECT_EQ(marked("(?=\xc3\xa9)", "\xc3\xa9\xc3\xa9"), "[]\xc3\xa9[]\xc3\xa9");
}

TEST(RegexTest, TextsAreNoExpressions) {
  const std::string text = std::string("a.b*[\\") + '\0' + "\xe2\x96\x81]";
  Regex::Match match;
  EXPECT_TRUE(Regex::literal(text).search("--" + text, 0, match));
  EXPECT_EQ(match.begin, 2u);
  EXPECT_EQ(match.end, 2 + text.size());
  EXPECT_FALSE(Regex::literal("a.c").search("abc", 0, match));
}

TEST(RegexTest, ConstructsWithAnotherMeaningAreRefused) {
  for (const char *pattern :
       {"^a",    "a$",      "\\bword", "\\h",    "\\R",    "\\A",         "(a)\\1", "(?m:.)",
        "(?i)a", "(?<n>a)", "(*UTF)a", "[a[b]]", "[a&&b]", "[[:alpha:]]", "[]a]",   "a{2}+",
        "a{2}?", "[\\W]",   "\\u{41}", "\\u12",  "\\x",    "\\pL",        "\\"})
    EXPECT_NE(messageOf([&] { Regex regex(pattern); }).find("which is not supported; expected"),
              std::string::npos)
        << pattern << ": " << messageOf([&] { Regex regex(pattern); });
  // Oniguruma takes U+00DF for "ss" and the reverse.
  for (const char *pattern : {"(?i:SS)", "(?i:a|ofFice)", "(?i:(x)(?:st))", "(?i:\xc3\x9f)",
                              "(?i:[\xc4\xb0])", "(?i:\\x{df})"})
    EXPECT_NE(
        messageOf([&] { Regex regex(pattern); }).find("in a group without case, `(?i:`, which"),
        std::string::npos)
        << pattern;
  EXPECT_EQ(marked("(?i:['\xe2\x80\x99]ll|s|s)ss|(?i:x)\xc3\x9f", "\xe2\x80\x99LLssX\xc3\x9f"),
            "[\xe2\x80\x99LLss][X\xc3\x9f]");
  EXPECT_EQ(marked("(?i:[)st]x)ss", "SXss"), "[SXss]");
  EXPECT_EQ(messageOf([] { Regex regex("a|^b"); }),
            "the regular expression 'a|^b' has '^', which is not supported; expected groups, sets, "
            "repetitions, look-around, `\\p{…}`, `\\s`, `\\d`, `\\w` and characters");
}

TEST(RegexTest, WrongExpressionsAreRefused) {
  EXPECT_EQ(messageOf([] { Regex regex("(a"); }),
            "the regular expression '(a' is wrong: missing closing parenthesis");
  EXPECT_EQ(messageOf([] { Regex regex("[a"); }),
            "the regular expression '[a' has a set without its ']'");
  EXPECT_EQ(messageOf([] { Regex regex("\\p{Nonsense}"); }),
            "the regular expression '\\p{Nonsense}' is wrong: unknown property after \\P or \\p");
  EXPECT_EQ(messageOf([] { Regex regex("\xff"); }), "the regular expression is not valid UTF-8");
  EXPECT_NE(messageOf([] { Regex regex(std::string(200, '(')); }).find("is wrong: "),
            std::string::npos);
}

TEST(RegexTest, ASearchWithoutEndIsAnError) {
  const Regex slow("(a+)+[bc]");
  Regex::Match match;
  EXPECT_NE(messageOf([&] {
              slow.search(std::string(40, 'a') + "d", 0, match);
            }).find("fails on a text of 41 bytes: match limit exceeded; split the text"),
            std::string::npos);
}

} // namespace
