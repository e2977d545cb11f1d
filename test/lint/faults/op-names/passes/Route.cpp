// A pass that knows ops: nn::RopeOp in a comment is no fault.
bool isRow(Operation *op) { return isa<nn::SoftmaxOp, nn::RmsNormOp>(op); }
Value build(OpBuilder &builder) { return nn::RopeOp::create(builder); }
bool isConstant(Operation *op) { return isa<arith::ConstantOp>(op); }
bool isGather(Operation *op) { return isa<AllGatherOp>(op); }
