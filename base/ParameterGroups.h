//===- ParameterGroups.h - rates and decay by patterns of names -*- C++ -*-===//
//
// The compiler, its IR, generated programs and checkpoints all use these texts.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_PARAMETERGROUPS_H
#define BASE_PARAMETERGROUPS_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace base {

/// The factor of the learning rate of the parameters whose names match `pattern`.
struct RateScale {
  std::string pattern; ///< see matchesPattern()
  double scale;        ///< finite and not negative, in f32 too

  /// "PATTERN=X", X with the fewest digits that read back as the same number in f32.
  std::string text() const;
  /// Parses "PATTERN=X"; the last '=' counts. Returns an empty text, or the fault.
  static std::string parse(std::string_view text, RateScale &scale);
};

/// The properties of a parameter that patterns depend on.
struct GroupedName {
  std::string name;
  bool isTrained;
};

/// A pattern that has no effect.
struct GroupFault {
  std::string setting; ///< "lr_scale" or "no_decay"
  std::string why;     ///< "no parameter matches 'x', expected …"
};

/// How updates of parameters differ from one another.
struct ParameterGroups {
  std::vector<RateScale> rateScales;
  std::vector<std::string> noDecay; ///< patterns; parameters of lower rank than two never decay

  /// The scale of the last pattern that matches; 1 where none does.
  double scaleOf(std::string_view name) const;
  /// Whether a pattern keeps the parameter from weight decay.
  bool exempts(std::string_view name) const;
  /// The first pattern that matches none of `names` that is trained.
  std::optional<GroupFault> findFault(const std::vector<GroupedName> &names) const;
  /// A message about patterns of `noDecay` that match none of `decaying`, the names of the trained
  /// parameters that decay without them: "--no-decay 'x' changes nothing: …". Empty if each matches
  /// one.
  std::string remarkOnNoDecay(const std::vector<std::string> &decaying) const;
  /// Why an update with the learning rate `rate` cannot use these factors: a product overflows in
  /// f32, or is 0 although neither factor is. Empty if it can.
  std::string faultOfRate(float rate) const;
  /// RateScale::text() of each.
  std::vector<std::string> rateScaleTexts() const;
  /// The texts must have that form. Of equal patterns only one is kept, as in GroupOptions::over().
  static ParameterGroups of(const std::vector<std::string> &rateScales,
                            std::vector<std::string> noDecay);
};

/// The values of --lr-scale and --no-decay.
struct GroupOptions {
  std::optional<std::vector<RateScale>> rateScales; ///< nothing: not given
  std::optional<std::vector<std::string>> noDecay;  ///< likewise

  /// These patterns where given, otherwise those of `groups`. Each pattern occurs once: of equal
  /// patterns of rates the last, which takes effect.
  ParameterGroups over(ParameterGroups groups) const;
};

/// The value of an option for no patterns: it discards the values before it.
constexpr const char *kNoGroups = "none";

} // namespace base

#endif // BASE_PARAMETERGROUPS_H
