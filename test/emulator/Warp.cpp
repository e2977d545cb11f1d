//===- Warp.cpp - what the lanes of a warp exchange --------------------------------===//

#include "Device.h"

namespace emulator {

std::uint64_t shuffle(Site site, unsigned mask, std::uint64_t value, unsigned from) {
  Shuffle mine{value, 0, from};
  meetWarp(site, mask, &mine, [](void *const *lanes) {
    for (int i = 0; i < 32; ++i)
      if (auto *to = static_cast<Shuffle *>(lanes[i])) {
        const auto *source = static_cast<const Shuffle *>(lanes[to->from]);
        to->result = source ? source->value : ~std::uint64_t(0);
        if (!source)
          to->from = 32;
      }
  });
  if (mine.from == 32)
    fail("%s at %s:%d reads the lane %u, which takes no part", site.what, site.file, site.line,
         from);
  return mine.result;
}

unsigned ballot(Site site, unsigned mask, bool predicate) {
  struct Vote {
    bool mine;
    unsigned all;
  } vote{predicate, 0};
  meetWarp(site, mask, &vote, [](void *const *lanes) {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i)
      if (lanes[i] && static_cast<Vote *>(lanes[i])->mine)
        all |= 1u << i;
    for (int i = 0; i < 32; ++i)
      if (lanes[i])
        static_cast<Vote *>(lanes[i])->all = all;
  });
  return vote.all;
}

} // namespace emulator
