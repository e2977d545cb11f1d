//===- GroupOptions.h - the options --lr-scale and --no-decay ---*- C++ -*-===//

#ifndef BASE_GROUPOPTIONS_H
#define BASE_GROUPOPTIONS_H

#include "base/Options.h"
#include "base/ParameterGroups.h"

namespace base {

/// Adds the options, which store their values in `options`; `otherwise` ends their descriptions:
/// "instead of the model's own".
inline void addGroupOptions(CLI::App &app, GroupOptions &options, const std::string &otherwise) {
  addRepeated(app, "--lr-scale", "PATTERN=X",
              "factor of the learning rate of the parameters whose names match PATTERN, in which "
              "'*' is any part of a name; may be given several times, and of several that match "
              "the last counts; none: all have the rate itself, whatever was given before it; " +
                  otherwise,
              [&options](const std::string &text) {
                if (!options.rateScales || text == kNoGroups)
                  options.rateScales.emplace();
                if (text == kNoGroups)
                  return std::string();
                return RateScale::parse(text, options.rateScales->emplace_back());
              });
  addRepeated(app, "--no-decay", "PATTERN",
              "parameters to which weight decay does not apply, besides those of a rank below two; "
              "may be given several times; none: no others, whatever was given before it; " +
                  otherwise,
              [&options](const std::string &text) {
                if (!options.noDecay || text == kNoGroups)
                  options.noDecay.emplace();
                if (text != kNoGroups)
                  options.noDecay->push_back(text);
                return std::string();
              });
}

} // namespace base

#endif // BASE_GROUPOPTIONS_H
