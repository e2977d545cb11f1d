//===- RoleNumbers.cpp ----------------------------------------------------===//

#include "codegen/RoleNumbers.h"

using namespace mlir;
using namespace mlir::fsdp;

RoleNumbers::RoleNumbers(ModuleOp module) {
  MeshAttr mesh =
      getMesh(module.getBody()->empty() ? module.getOperation() : &module.getBody()->front());
  auto programs = module.getOps<ProgramOp>();
  for (StringAttr axis : mesh.getAxisNames())
    if (llvm::any_of(programs, [&](ProgramOp program) { return program.getRole().get(axis); }))
      axes.push_back(axis);
  for (ProgramOp program : programs) {
    SmallVector<int64_t> &numbers = ofProgram[program.getSymNameAttr()];
    for (int64_t number = 0, end = mesh.getSize(axes); number < end; ++number) {
      int64_t rest = number;
      const bool isPlayed = llvm::all_of(llvm::reverse(axes), [&](StringAttr axis) {
        const int64_t size = mesh.getAxisSize(axis), coordinate = rest % size;
        rest /= size;
        auto fixed = program.getRole().getAs<IntegerAttr>(axis);
        return !fixed || fixed.getInt() == coordinate;
      });
      if (isPlayed)
        numbers.push_back(number);
    }
  }
}

SmallVector<int64_t> RoleNumbers::of(StorageOp storage) const {
  SmallVector<int64_t> numbers;
  if (storage.getRoles())
    for (auto symbol : storage.getRoles()->getAsRange<FlatSymbolRefAttr>())
      llvm::append_range(numbers, ofProgram.find(symbol.getAttr())->second);
  llvm::sort(numbers);
  return numbers;
}
