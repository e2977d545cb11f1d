//===- PrecompiledMlirHeaders.h - those of the compiler's tests -*- C++ -*-===//
//
// The precompiled headers of the compiler's sources (dialect/PrecompiledHeaders.h), and GoogleTest,
// compiled as unit tests are: without optimization.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PRECOMPILEDMLIRHEADERS_H
#define TEST_UNIT_PRECOMPILEDMLIRHEADERS_H

#include "dialect/PrecompiledHeaders.h"
#include "test/unit/PrecompiledHeaders.h"

#endif // TEST_UNIT_PRECOMPILEDMLIRHEADERS_H
