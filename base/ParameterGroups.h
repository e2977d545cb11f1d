//===- ParameterGroups.h - rates and decay by patterns of names -*- C++ -*-===//
//
// The compiler, its IR, generated programs and checkpoints all have these texts.
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

/// A parameter as patterns see it.
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
  /// That patterns of `noDecay` match none of `decaying`, the names of the trained parameters that
  /// decay without them: "--no-decay 'x' changes nothing: …". Empty: each matches one.
  std::string remarkOnNoDecay(const std::vector<std::string> &decaying) const;
  /// Why an update with the learning rate `rate` cannot have these factors: a product overflows in
  /// f32, or is 0 though neither is. Empty: it can.
  std::string faultOfRate(float rate) const;
  /// RateScale::text() of each.
  std::vector<std::string> rateScaleTexts() const;
  /// The texts must be such. Of equal patterns only one is kept, as in GroupOptions::over().
  static ParameterGroups of(const std::vector<std::string> &rateScales,
                            std::vector<std::string> noDecay);
};

/// The values of --lr-scale and --no-decay.
struct GroupOptions {
  std::optional<std::vector<RateScale>> rateScales; ///< nothing: not given
  std::optional<std::vector<std::string>> noDecay;  ///< likewise

  /// These where they are given, those of `groups` elsewhere. Each pattern is there once: of rates
  /// the last, which is the one that counts.
  ParameterGroups over(ParameterGroups groups) const;
};

/// The word of options for no patterns: what stands before it does not count.
constexpr const char *kNoGroups = "none";

} // namespace base

#endif // BASE_PARAMETERGROUPS_H
