//===- PrecompiledHeaders.h - precompiled headers of unit tests -*- C++ -*-===//
//
// GoogleTest, and the headers of the C++ library that nearly every unit test includes: precompiled
// once, they save three quarters of the time that a small test takes to compile. Every file still
// includes what it uses.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PRECOMPILEDHEADERS_H
#define TEST_UNIT_PRECOMPILEDHEADERS_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#endif // TEST_UNIT_PRECOMPILEDHEADERS_H
