//===- ShardingRules.cpp - the rules of the ops of a program --------------===//

#include "passes/sharding/ShardingRules.h"

using namespace mlir;
using namespace mlir::fsdp;

unsigned ShardingRules::Kind::getHashValue(Operation *op) {
  llvm::hash_code code = llvm::hash_combine(op->getName(), op->hashProperties());
  for (Type type : op->getOperandTypes())
    code = llvm::hash_combine(code, type);
  for (Type type : op->getResultTypes())
    code = llvm::hash_combine(code, type);
  return static_cast<unsigned>(size_t(code));
}

bool ShardingRules::Kind::isEqual(Operation *one, Operation *other) {
  if (one == other)
    return true;
  auto isKey = [](Operation *op) { return op != getEmptyKey() && op != getTombstoneKey(); };
  return isKey(one) && isKey(other) && one->getName() == other->getName() &&
         one->getOperandTypes() == other->getOperandTypes() &&
         one->getResultTypes() == other->getResultTypes() &&
         one->getName().compareOpProperties(one->getPropertiesStorage(),
                                            other->getPropertiesStorage());
}

const nn::ShardingRule *ShardingRules::get(Operation *op) {
  auto [known, isNew] = ofOp.try_emplace(op, nullptr);
  if (!isNew)
    return known->second;
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
  if (!ruled)
    return nullptr;
  std::unique_ptr<nn::ShardingRule> &rule = ofKind[op];
  if (!rule)
    rule = std::make_unique<nn::ShardingRule>(ruled.getShardingRule());
  return known->second = rule.get();
}
