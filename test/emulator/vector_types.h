//===- vector_types.h - CUDA's small vectors, for the CPU -----------------------===//
#ifndef FSDP_EMULATOR_VECTOR_TYPES_H
#define FSDP_EMULATOR_VECTOR_TYPES_H

// Copies go through functions written out: -fsanitize=alignment looks at references that are bound,
// and not at copies that the compiler makes of itself.
#define FSDP_EMULATOR_CHECKED(Name)                                                                \
  Name() = default;                                                                                \
  Name(const Name &o) { *this = o; }

#define FSDP_EMULATOR_VECTORS(T, Name, Align2, Align4)                                             \
  struct Name##1 { T x; };                                                                         \
  struct alignas(Align2) Name##2 {                                                                 \
    T x, y;                                                                                        \
    FSDP_EMULATOR_CHECKED(Name##2)                                                                 \
    Name##2(T x, T y) : x(x), y(y) {}                                                              \
    Name##2 &operator=(const Name##2 & o) {                                                        \
      x = o.x, y = o.y;                                                                            \
      return *this;                                                                                \
    }                                                                                              \
  };                                                                                               \
  struct Name##3 { T x, y, z; };                                                                   \
  struct alignas(Align4) Name##4 {                                                                 \
    T x, y, z, w;                                                                                  \
    FSDP_EMULATOR_CHECKED(Name##4)                                                                 \
    Name##4(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}                                        \
    Name##4 &operator=(const Name##4 & o) {                                                        \
      x = o.x, y = o.y, z = o.z, w = o.w;                                                          \
      return *this;                                                                                \
    }                                                                                              \
  };                                                                                               \
  inline Name##1 make_##Name##1(T x) { return {x}; }                                               \
  inline Name##2 make_##Name##2(T x, T y) { return {x, y}; }                                       \
  inline Name##3 make_##Name##3(T x, T y, T z) { return {x, y, z}; }                               \
  inline Name##4 make_##Name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

FSDP_EMULATOR_VECTORS(signed char, char, 2, 4)
FSDP_EMULATOR_VECTORS(unsigned char, uchar, 2, 4)
FSDP_EMULATOR_VECTORS(short, short, 4, 8)
FSDP_EMULATOR_VECTORS(unsigned short, ushort, 4, 8)
FSDP_EMULATOR_VECTORS(int, int, 8, 16)
FSDP_EMULATOR_VECTORS(unsigned, uint, 8, 16)
FSDP_EMULATOR_VECTORS(long long, longlong, 16, 16)
FSDP_EMULATOR_VECTORS(unsigned long long, ulonglong, 16, 16)
FSDP_EMULATOR_VECTORS(float, float, 8, 16)
FSDP_EMULATOR_VECTORS(double, double, 16, 16)
#undef FSDP_EMULATOR_VECTORS
#undef FSDP_EMULATOR_CHECKED

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#endif // FSDP_EMULATOR_VECTOR_TYPES_H
