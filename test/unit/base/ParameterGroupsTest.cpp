//===- ParameterGroupsTest.cpp - rates and decay by patterns of names ------===//

#include "base/ParameterGroups.h"
#include "base/PrintableText.h"

#include <gtest/gtest.h>

using namespace base;

namespace {

/// The text as it is spelled again, or the fault.
std::string parsed(const std::string &text) {
  RateScale scale{"unchanged", 7};
  const std::string fault = RateScale::parse(text, scale);
  EXPECT_TRUE(fault.empty() || scale.pattern == "unchanged");
  return fault.empty() ? scale.text() : fault;
}

TEST(ParameterGroupsTest, AScaleHasOneSpelling) {
  EXPECT_EQ(parsed("wte.weight=0.10"), "wte.weight=0.1");
  EXPECT_EQ(parsed("*=0"), "*=0");
  EXPECT_EQ(parsed("a=b=2"), "a=b=2") << "the last '=' counts";
  EXPECT_EQ(parsed("h.*.bias=1e-7"), "h.*.bias=1e-07");
  EXPECT_EQ(parsed(parsed("h=16777217")), "h=16777216") << "numbers are those of f32";
}

TEST(ParameterGroupsTest, OtherTextsAreRefused) {
  const std::string form = ", expected PATTERN=X, X a finite f32 number >= 0";
  for (const std::string text : {"", "wte", "=1"})
    EXPECT_EQ(parsed(text), "got '" + text + "'" + form);
  for (const std::string number : {"", "-1", "nan", "inf", "1e39", "1e-50", "x", "-0"})
    EXPECT_EQ(parsed("a*=" + number),
              "the factor of 'a*': got '" + number + "', expected a finite f32 number >= 0");
}

TEST(ParameterGroupsTest, TheLastPatternThatMatchesCounts) {
  const ParameterGroups groups =
      ParameterGroups::of({"*.bias=3", "fc1.*=0.5", "fc1.w*=2"}, {"*.ln"});
  EXPECT_EQ(groups.scaleOf("fc2.bias"), 3);
  EXPECT_EQ(groups.scaleOf("fc1.bias"), 0.5);
  EXPECT_EQ(groups.scaleOf("fc1.weight"), 2);
  EXPECT_EQ(groups.scaleOf("fc2.weight"), 1);
  EXPECT_TRUE(groups.exempts("h.0.ln"));
  EXPECT_FALSE(groups.exempts("h.0.ln.weight")) << "the whole name must match";
}

TEST(ParameterGroupsTest, OptionsTakeThePlaceOfOthersAsAWhole) {
  const ParameterGroups others = ParameterGroups::of({"a=2", "b=3"}, {"a"});
  GroupOptions options;
  EXPECT_EQ(options.over(others).rateScaleTexts(), others.rateScaleTexts());
  EXPECT_EQ(options.over(others).noDecay, others.noDecay);
  options.rateScales = {{"c", 1}};
  EXPECT_EQ(options.over(others).rateScaleTexts(), std::vector<std::string>{"c=1"});
  EXPECT_EQ(options.over(others).noDecay, others.noDecay);
  options.noDecay.emplace();
  EXPECT_TRUE(options.over(others).noDecay.empty());
}

TEST(ParameterGroupsTest, EachPatternIsThereOnce) {
  const ParameterGroups groups =
      ParameterGroups::of({"a=2", "b=3", "a=2", "*=4", "a=5"}, {"a", "b*", "a"});
  EXPECT_EQ(groups.rateScaleTexts(), (std::vector<std::string>{"b=3", "*=4", "a=5"}));
  EXPECT_EQ(groups.noDecay, (std::vector<std::string>{"a", "b*"}));
  GroupOptions options;
  options.rateScales = {{"a", 2}, {"a", 3}};
  options.noDecay = {"a", "a"};
  EXPECT_EQ(options.over({}).rateScaleTexts(), std::vector<std::string>{"a=3"});
  EXPECT_EQ(options.over({}).noDecay, std::vector<std::string>{"a"});
}

TEST(ParameterGroupsTest, TheRateOfEachParameterIsANumberOfF32) {
  const auto fault = [](const char *scale, float rate) {
    return ParameterGroups::of({"a=1", scale}, {}).faultOfRate(rate);
  };
  EXPECT_EQ(fault("b*=1e30", 1e8f), "");
  EXPECT_EQ(fault("b*=0", 1e30f), "");
  EXPECT_EQ(fault("b*=1e-30", 0), "");
  EXPECT_EQ(fault("b*=1e30", 1e9f),
            "the learning rate of 'b*' is 1e+09 times 1e+30, which is larger than the largest "
            "number of f32: give another --lr or another factor (--lr-scale)");
  EXPECT_EQ(fault("b*=1e-30", 1e-20f),
            "the learning rate of 'b*' is 1e-20 times 1e-30, which is too small for f32: give "
            "another --lr or another factor (--lr-scale)");
}

TEST(ParameterGroupsTest, TextsOfUsersAreEscapedAndShort) {
  EXPECT_EQ(parsed("a\n\x1B[2J\xC2\x85=x"), "the factor of 'a\\n\\x1B[2J\\xC2\\x85': got 'x', "
                                            "expected a finite f32 number >= 0");
  const std::string fault =
      ParameterGroups::of({std::string(5000, 'p') + "=1"}, {}).findFault({{"a", true}})->why;
  const std::string p(80, 'p');
  EXPECT_EQ(fault, "no parameter matches '" + p + " ... (4840 bytes left out) ... " + p +
                       "', expected the name of one, or names with '*' for any part of them; this "
                       "model has 'a'");
  EXPECT_EQ(inQuotes(std::string(200, 'x')), "'" + std::string(200, 'x') + "'");
  const std::string wide = "\xE2\x82\xAC"; // no half of a character
  std::string many = "x";
  for (int i = 0; i < 100; ++i)
    many += wide;
  const std::string shown = inQuotes(many);
  EXPECT_EQ(shown.find("\xE2 "), shown.npos);
  EXPECT_EQ(shown.find("\xE2\x82 "), shown.npos);
  EXPECT_NE(shown.find(wide + " ... ("), shown.npos) << shown;
  EXPECT_NE(shown.find(") ... " + wide), shown.npos) << shown;
}

TEST(ParameterGroupsTest, APatternMustMatchATrainedParameter) {
  const std::vector<GroupedName> names = {{"wte", false},   {"a.down", true}, {"a.up", true},
                                          {"b.down", true}, {"b.up", true},   {"c.down", true},
                                          {"c.up", true}};
  EXPECT_FALSE(ParameterGroups::of({"*=2", "*e*=2"}, {"a.*", "wte"})
                   .findFault({{"wte", true}, {"a.b", true}}));
  EXPECT_FALSE(ParameterGroups::of({"*=2"}, {"*.down"}).findFault(names));
  auto fault = ParameterGroups::of({"a.*=2", "d.*=2"}, {"wte"}).findFault(names);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->setting, "lr_scale");
  EXPECT_EQ(fault->why,
            "no parameter matches 'd.*', expected the name of one, or names with '*' for any part "
            "of them; this model has 'wte', 'a.down', 'a.up', 'b.down', 'b.up', …");
  fault = ParameterGroups::of({"a.*=2"}, {"wt*"}).findFault(names);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->setting, "no_decay");
  EXPECT_EQ(fault->why, "'wt*' matches only parameters that are frozen, which no update changes; "
                        "leave it out, or name some that are trained: 'a.down', 'a.up', 'b.down', "
                        "'b.up', 'c.down', …");
}

} // namespace
