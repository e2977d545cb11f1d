//===- PrecompiledHeaders.h - precompiled headers ---------------*- C++ -*-===//
//
// The headers of MLIR and of the dialects that nearly every file of the compiler includes. They are
// precompiled once and given to every library of the compiler (see CMakeLists.txt): without
// precompilation they take most of the time to compile a file (8.6 s; 4.7 s with MLIR's
// precompiled, 1.9 s with both). Every file still includes the headers that it uses.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_PRECOMPILEDHEADERS_H
#define DIALECT_PRECOMPILEDHEADERS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

#endif // DIALECT_PRECOMPILEDHEADERS_H
