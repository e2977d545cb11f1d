// The allowance for nn.fused is needed no more.
bool named(Operation *op) { return isa<LaunchOp>(op); }
