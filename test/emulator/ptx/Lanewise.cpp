//===- Lanewise.cpp - numbers of the lanes of a warp ------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

void copyNumbers(const Warp &warp, Ref ref, std::size_t bytes, void *numbers) {
  auto *to = static_cast<char *>(numbers);
  for (unsigned i = 0; i < 32; ++i)
    if (ref.width == 0)
      to[i] = static_cast<char>(warp.predicate(ref) >> i & 1);
    else
      std::memcpy(to + i * bytes, warp.at<char>(ref) + i * ref.width, bytes);
}

void setNumbers(Warp &warp, Ref ref, Lanes lanes, std::size_t bytes, const void *numbers) {
  const auto *from = static_cast<const char *>(numbers);
  if (ref.width == 0) {
    Lanes holds = 0;
    for (unsigned i = 0; i < 32; ++i)
      holds |= Lanes(from[i] != 0) << i;
    warp.setPredicate(ref, lanes, holds);
  } else if (lanes == kAllLanes) {
    std::memcpy(warp.at<char>(ref), from, 32 * bytes);
  } else {
    each(lanes,
         [&](unsigned i) { std::memcpy(warp.at<char>(ref) + i * bytes, from + i * bytes, bytes); });
  }
}

} // namespace emulator::ptx
