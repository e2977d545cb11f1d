//===- Carries.cpp - sums of numbers longer than a register
//---------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

enum Option : std::uint8_t { Reads = 1, Writes = 2, Subtracts = 4, Multiplies = 8, High = 16 };

/// add, sub and mad with the carry of the lane, which .cc writes and addc, subc and madc read.
template <class T> void run(Warp &warp, const Instruction &in, Lanes lanes) {
  using Wide = unsigned __int128;
  const T *a = warp.at<T>(in.a), *b = warp.at<T>(in.b);
  each(lanes, [&](unsigned i) {
    const unsigned carry = in.option & Reads ? warp.carry >> i & 1 : 0;
    Wide sum;
    if (in.option & Subtracts) {
      sum = Wide(a[i]) - b[i] - carry;
    } else if (in.option & Multiplies) {
      const Wide product = Wide(a[i]) * b[i];
      sum = Wide(static_cast<T>(in.option & High ? product >> (8 * sizeof(T)) : product)) +
            warp.at<T>(in.c)[i] + carry;
    } else {
      sum = Wide(a[i]) + b[i] + carry;
    }
    warp.at<T>(in.d)[i] = static_cast<T>(sum);
    if (in.option & Writes)
      warp.carry = (warp.carry & ~(Lanes(1) << i)) | Lanes(sum >> (8 * sizeof(T)) & 1) << i;
  });
}

} // namespace

bool decodeCarries(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  static const std::map<std::string, unsigned> names = {
      {"add", 0},          {"addc", Reads},
      {"sub", Subtracts},  {"subc", Subtracts | Reads},
      {"mad", Multiplies}, {"madc", Multiplies | Reads}};
  const auto name = names.find(statement.opcode);
  const std::string &type = statement.last();
  const unsigned bytes = bytesOfType(type);
  const bool isSignedHigh = statement.has("hi") && type[0] == 's';
  if (name == names.end() || (bytes != 4 && bytes != 8) || type[0] == 'f' || isSignedHigh ||
      statement.has("sat") || statement.has("wide"))
    return false;
  decoder.in.option = static_cast<std::uint8_t>(name->second | (statement.has("cc") ? Writes : 0) |
                                                (statement.has("hi") ? High : 0));
  decoder.operandsOf(bytes, bytes, bytes, name->second & Multiplies ? bytes : 0);
  decoder.in.run = bytes == 4 ? run<std::uint32_t> : run<std::uint64_t>;
  return true;
}

} // namespace emulator::ptx
