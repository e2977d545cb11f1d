//===- PtxEvaluation.h - single instructions of PTX, in 32 lanes ------------------===//
#ifndef FSDP_TEST_UNIT_EMULATOR_PTXEVALUATION_H
#define FSDP_TEST_UNIT_EMULATOR_PTXEVALUATION_H

#include "Emulation.h"
#include "ptx/Kernels.h"
#include "ptx/Text.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace emulator::ptx {

inline std::uint64_t bits(float x) {
  std::uint32_t to;
  std::memcpy(&to, &x, sizeof to);
  return to;
}
inline std::uint64_t bits(double x) {
  std::uint64_t to;
  std::memcpy(&to, &x, sizeof to);
  return to;
}
inline float asFloat(std::uint64_t x) {
  const auto low = static_cast<std::uint32_t>(x);
  float to;
  std::memcpy(&to, &low, sizeof to);
  return to;
}

/// A kernel of one block with two parameters, `in` and `out`: addresses in %rd1 and %rd2, the
/// thread in %r1 (and as an offset of 8 bytes each in %rd3). Registers %h0 to %h15, %r0 to %r15,
/// %w0 to %w15, %p0 to %p7, %f, %d of floats.
struct Text {
  std::string declarations, body;
  unsigned threads = 32;
  std::size_t dynamicBytes = 0;
  bool followsRaces = false;

  std::string whole() const {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 "
           "dynamic[];\n" +
           declarations +
           "\n.visible .entry k(.param .u64 k_in, .param .u64 k_out)\n{\n"
           ".reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %w<16>; .reg .f32 %f<16>; .reg .f64 "
           "%d<16>; .reg .pred %p<8>; .reg .b64 %rd<8>;\n"
           "ld.param.u64 %rd1, [k_in]; ld.param.u64 %rd2, [k_out]; mov.u32 %r1, %tid.x; "
           "mul.wide.u32 %rd3, %r1, 8;\n" +
           body + "\n}\n";
  }
};

/// The tests' fixture: a kernel gets 8 bytes of `in` for each thread, and writes as many.
class PtxEvaluation : public Emulation {
protected:
  /// What went wrong, or "".
  std::string run(const Text &text, const std::vector<std::uint64_t> &in,
                  std::vector<std::uint64_t> &out) {
    Buffer<std::uint64_t> from(in.size() + 1), to(out.size() + 1);
    EXPECT_EQ(cudaMemcpy(from.data, in.data(), in.size() * 8, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(to.data, out.data(), out.size() * 8, cudaMemcpyHostToDevice), cudaSuccess);
    using Call = KernelCall<std::index_sequence<0, 1>, std::uint64_t *, std::uint64_t *>;
    const Call call{{from.data}, {to.data}, nullptr};
    const Launch launch{
        dim3(1), dim3(text.threads),          text.dynamicBytes,
        nullptr, copyOf(&call, sizeof(call)), {Call::perform, sizeof(call), 2, Call::sizes},
        1};
    const std::string wrong = runText(text.whole(), "k", launch, text.followsRaces);
    std::vector<std::uint64_t> values = to.values();
    values.pop_back();
    out = values;
    return wrong;
  }

  /// The result of an instruction whose operands are named after their registers: %h are 16 bits,
  /// %r 32, %w 64, %f and %d floats, %p predicates; the result is number 9, the operands are 2, 3,
  /// 4 and so on.
  std::uint64_t evaluate(const std::string &instruction, std::vector<std::uint64_t> operands) {
    Text text;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string n = std::to_string(i + 2);
      text.body += "ld.global.u64 %w" + n + ", [%rd1+" + std::to_string(8 * i) +
                   "];\ncvt.u32.u64 %r" + n + ", %w" + n + ";\ncvt.u16.u64 %h" + n + ", %w" + n +
                   ";\nmov.b32 %f" + n + ", %r" + n + ";\nmov.b64 %d" + n + ", %w" + n +
                   ";\nsetp.ne.b64 %p" + n + ", %w" + n + ", 0;\n";
    }
    text.body += instruction + ";\n";
    const char kind = instruction[instruction.find('%') + 1];
    if (kind == 'h')
      text.body += "cvt.u64.u16 %w9, %h9;\n";
    if (kind == 'r')
      text.body += "cvt.u64.u32 %w9, %r9;\n";
    if (kind == 'f')
      text.body += "mov.b32 %r9, %f9;\ncvt.u64.u32 %w9, %r9;\n";
    if (kind == 'd')
      text.body += "mov.b64 %w9, %d9;\n";
    if (kind == 'p')
      text.body += "selp.b64 %w9, 1, 0, %p7;\n";
    text.body += "st.global.u64 [%rd2], %w9;\nret;";
    text.threads = 1;
    std::vector<std::uint64_t> out(1);
    operands.resize(std::max<std::size_t>(operands.size(), 1));
    EXPECT_EQ(run(text, operands, out), "") << instruction;
    return out[0];
  }

  void expect(const std::string &instruction, const std::vector<std::uint64_t> &operands,
              std::uint64_t expected) {
    const std::uint64_t got = evaluate(instruction, operands);
    EXPECT_EQ(got, expected) << instruction << " gave " << std::hex << got << ", expected "
                             << expected;
  }
};

} // namespace emulator::ptx

#endif // FSDP_TEST_UNIT_EMULATOR_PTXEVALUATION_H
