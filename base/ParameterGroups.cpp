#include "base/ParameterGroups.h"

#include "base/NamePattern.h"
#include "base/Numbers.h"
#include "base/PrintableText.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace base {

std::string RateScale::text() const { return pattern + "=" + shortest(static_cast<float>(scale)); }

std::string RateScale::parse(std::string_view text, RateScale &scale) {
  const std::size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0)
    return mismatch(text, "PATTERN=X, X " + NumberRange{}.describe());
  double value = 0;
  if (std::string wrong = parseNumber(text.substr(equals + 1), {}, value); !wrong.empty())
    return "the factor of " + inQuotes(text.substr(0, equals)) + ": " + wrong;
  scale = {std::string(text.substr(0, equals)), value};
  return "";
}

double ParameterGroups::scaleOf(std::string_view name) const {
  for (auto scale = rateScales.rbegin(); scale != rateScales.rend(); ++scale)
    if (matchesPattern(scale->pattern, name))
      return scale->scale;
  return 1;
}

bool ParameterGroups::exempts(std::string_view name) const {
  return std::any_of(noDecay.begin(), noDecay.end(),
                     [&](const std::string &pattern) { return matchesPattern(pattern, name); });
}

/// Why `pattern` matches no trained parameter; empty if it matches one.
static std::string faultOfPattern(const std::string &pattern,
                                  const std::vector<GroupedName> &names) {
  NameList all, trained;
  bool matches = false;
  for (const GroupedName &each : names) {
    const bool is = matchesPattern(pattern, each.name);
    if (is && each.isTrained)
      return "";
    matches |= is;
    all.add(each.name);
    if (each.isTrained)
      trained.add(each.name);
  }
  if (matches)
    return inQuotes(pattern) +
           " matches only parameters that are frozen, which no update changes; leave it out, or "
           "name some that are trained: " +
           trained.list();
  return "no parameter matches " + inQuotes(pattern) +
         ", expected the name of one, or names with '*' for any part of them; this model has " +
         all.list();
}

std::optional<GroupFault> ParameterGroups::findFault(const std::vector<GroupedName> &names) const {
  for (const RateScale &scale : rateScales)
    if (std::string why = faultOfPattern(scale.pattern, names); !why.empty())
      return GroupFault{"lr_scale", std::move(why)};
  for (const std::string &pattern : noDecay)
    if (std::string why = faultOfPattern(pattern, names); !why.empty())
      return GroupFault{"no_decay", std::move(why)};
  return std::nullopt;
}

std::string ParameterGroups::remarkOnNoDecay(const std::vector<std::string> &decaying) const {
  NameList patterns;
  for (const std::string &pattern : noDecay)
    if (std::none_of(decaying.begin(), decaying.end(),
                     [&](const std::string &name) { return matchesPattern(pattern, name); }))
      patterns.add(pattern);
  if (patterns.size() == 0)
    return "";
  return "--no-decay " + patterns.list() +
         " changes nothing: no parameter of that name decays without it, as that takes a rank of "
         "two and more; leave it out";
}

std::string ParameterGroups::faultOfRate(float rate) const {
  for (const RateScale &each : rateScales) {
    const auto scale = static_cast<float>(each.scale);
    const float product = rate * scale;
    if (std::isfinite(product) && (product != 0 || rate == 0 || scale == 0))
      continue;
    return "the learning rate of " + inQuotes(each.pattern) + " is " + shortest(rate) + " times " +
           shortest(scale) + ", which is " +
           (product == 0 ? "too small for" : "larger than the largest number of") +
           " f32: give another --lr or another factor (--lr-scale)";
  }
  return "";
}

std::vector<std::string> ParameterGroups::rateScaleTexts() const {
  std::vector<std::string> texts;
  for (const RateScale &scale : rateScales)
    texts.push_back(scale.text());
  return texts;
}

/// Keeps the last of equal patterns of rates, and one of equal ones without decay.
static ParameterGroups withoutDuplicates(ParameterGroups groups) {
  std::set<std::string> seen;
  const auto isSeen = [&](const std::string &pattern) { return !seen.insert(pattern).second; };
  auto &scales = groups.rateScales;
  scales.erase(scales.begin(),
               std::remove_if(scales.rbegin(), scales.rend(), [&](const RateScale &scale) {
                 return isSeen(scale.pattern);
               }).base());
  seen.clear();
  auto &exempt = groups.noDecay;
  exempt.erase(std::remove_if(exempt.begin(), exempt.end(), isSeen), exempt.end());
  return groups;
}

ParameterGroups ParameterGroups::of(const std::vector<std::string> &rateScales,
                                    std::vector<std::string> noDecay) {
  ParameterGroups groups;
  groups.noDecay = std::move(noDecay);
  for (const std::string &text : rateScales) {
    RateScale scale;
    if (RateScale::parse(text, scale).empty())
      groups.rateScales.push_back(std::move(scale));
  }
  return withoutDuplicates(std::move(groups));
}

ParameterGroups GroupOptions::over(ParameterGroups groups) const {
  if (rateScales)
    groups.rateScales = *rateScales;
  if (noDecay)
    groups.noDecay = *noDecay;
  return withoutDuplicates(std::move(groups));
}

} // namespace base
